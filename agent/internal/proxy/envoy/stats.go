package envoy

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of Envoy's HotRestartMessage, of its Reply and of that one's Stats.
const (
	replyField    = 2
	statsField    = 3
	gaugesField   = 4 // map<string, uint64>; 3 has the counters' increments
	dynamicsField = 5 // map<string, spans>: which parts of a name are dynamic
	mapKey        = 1
	mapValue      = 2
)

// generationGauge is the one gauge of a parent's that Envoy keeps when the parent
// ends: each generation counts on from it (fact 10).
const generationGauge = "server.hot_restart_generation"

// repliesTo tells whether a message can be what a request of that kind is
// answered with: it isn't what another is.
func repliesTo(message []byte, k Request) bool {
	n, _, size := protowire.ConsumeTag(submessage(message, replyField))
	return size <= 0 || n == protowire.Number(k) // replies are numbered as their requests are
}

// gaugesAtZero makes of a parent's stats the answer that takes its gauges back.
// Envoy adds a parent's gauges to its child's and takes them off when the child
// tells its parent to end (fact 10). Ours ends before that timer, and what it
// had last said would stay. nil: there is nothing to take back.
func gaugesAtZero(reply []byte) []byte {
	stats := submessage(submessage(reply, replyField), statsField)
	held := map[string]bool{}
	var out []byte
	for entry := range fields(stats, gaugesField) {
		name := submessage(entry, mapKey)
		if value, ok := number(entry, mapValue); ok && value != 0 && string(name) != generationGauge {
			held[string(name)] = true
			zero := protowire.AppendBytes(protowire.AppendTag(nil, mapKey, protowire.BytesType), name)
			zero = protowire.AppendVarint(protowire.AppendTag(zero, mapValue, protowire.VarintType), 0)
			out = protowire.AppendBytes(protowire.AppendTag(out, gaugesField, protowire.BytesType), zero)
		}
	}
	if len(held) == 0 {
		return nil
	}
	for entry := range fields(stats, dynamicsField) { // the same stats as before
		if held[string(submessage(entry, mapKey))] {
			out = protowire.AppendBytes(protowire.AppendTag(out, dynamicsField, protowire.BytesType), entry)
		}
	}
	out = protowire.AppendBytes(protowire.AppendTag(nil, statsField, protowire.BytesType), out)
	out = protowire.AppendBytes(protowire.AppendTag(nil, replyField, protowire.BytesType), out)
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(out))), out...)
}

// fields are the length-delimited ones of a number, as far as the message can
// be read.
func fields(message []byte, want protowire.Number) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			n, kind, size := protowire.ConsumeTag(message)
			if size < 0 {
				return
			}
			body := message[size:]
			length := protowire.ConsumeFieldValue(n, kind, body)
			if length < 0 {
				return
			}
			if n == want && kind == protowire.BytesType {
				if value, _ := protowire.ConsumeBytes(body); !yield(value) {
					return
				}
			}
			message = body[length:]
		}
	}
}

func submessage(message []byte, want protowire.Number) (last []byte) {
	for value := range fields(message, want) {
		last = value
	}
	return last
}

// number is a varint field.
func number(message []byte, want protowire.Number) (value uint64, ok bool) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return value, ok
		}
		body := message[size:]
		if n == want && kind == protowire.VarintType {
			value, _ = protowire.ConsumeVarint(body)
			ok = true
		}
		length := protowire.ConsumeFieldValue(n, kind, body)
		if length < 0 {
			return value, ok
		}
		message = body[length:]
	}
	return value, ok
}
