package envoy

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// bytesField and its like build messages as protobuf would.
func bytesField(n protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), content)
}

func numberField(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func entry(field protowire.Number, key string, value []byte) []byte {
	return bytesField(field, append(bytesField(mapKey, []byte(key)), value...))
}

func statsReply(content ...[]byte) []byte {
	return bytesField(replyField, bytesField(statsField, bytes.Join(content, nil)))
}

// A parent's gauges go when it goes; counters and the generation stay, and what
// was 0 needs nothing.
func TestFact10GaugesOfAParentThatIsGoneAreTakenBack(t *testing.T) {
	spans := []byte("spans")
	got := gaugesAtZero(statsReply(
		numberField(1, 4711), numberField(2, 3),
		entry(gaugesField, "a", numberField(mapValue, 3)),
		entry(gaugesField, "b", numberField(mapValue, 0)),
		entry(gaugesField, "c", nil),
		entry(gaugesField, "d.x", numberField(mapValue, 1<<40)),
		entry(3, "counter", numberField(mapValue, 9)), // counter_deltas
		entry(gaugesField, "server.hot_restart_generation", numberField(mapValue, 2)),
		entry(dynamicsField, "d.x", bytesField(mapValue, spans)),
		entry(dynamicsField, "b", bytesField(mapValue, spans)),
	))
	want := frame(statsReply(
		entry(gaugesField, "a", numberField(mapValue, 0)),
		entry(gaugesField, "d.x", numberField(mapValue, 0)),
		entry(dynamicsField, "d.x", bytesField(mapValue, spans)),
	)...)
	if !bytes.Equal(got, want) {
		t.Errorf("% x\nwant % x", got, want)
	}
}

func TestNoGaugesToTakeBack(t *testing.T) {
	for _, reply := range [][]byte{
		nil, {}, []byte("garbage"), {0xff, 0xff}, statsReply(), statsReply([]byte{0x22}),
		answerFor(ShutdownAdmin, time.Unix(1, 0))[frameHeader:], statsReply(entry(gaugesField, "a", numberField(mapValue, 0))),
	} {
		if got := gaugesAtZero(reply); got != nil {
			t.Errorf("% x: % x", reply, got)
		}
	}
}
