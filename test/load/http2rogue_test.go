package load_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"aether.internal/test/load"
	"aether.internal/test/load/internal/wire"
)

// framed is a server's end of an HTTP/2 connection, frame by frame.
type framed struct {
	*wireConn
	*http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
}

// h2script does what it does with one HTTP/2 connection.
type h2script func(f *framed, n int)

// speakH2 does the preface, then the script.
func speakH2(do h2script) script {
	return func(c *wireConn, n int) {
		if _, err := io.ReadFull(c.in, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := &framed{wireConn: c, Framer: http2.NewFramer(c.Conn, c.in)}
		f.encoder = hpack.NewEncoder(&f.block)
		_ = f.WriteSettings()
		do(f, n)
		// What the client still says would turn the close into a reset.
		_ = c.tcp.CloseWrite()
		_, _ = io.Copy(io.Discard, c.in)
	}
}

// request waits for the next one and returns its stream; 0 at the end.
func (f *framed) request() uint32 {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return 0
		}
		if h, ok := frame.(*http2.HeadersFrame); ok {
			return h.StreamID
		}
	}
}

// settle reads until the client has sent a request and acknowledged our
// settings: a write of its own that meets the RST would take the error away
// from its reader, which then sees a plain end.
func (f *framed) settle() {
	var asked, settled bool
	for !asked || !settled {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			asked = true
		case *http2.SettingsFrame:
			settled = settled || frame.IsAck()
		}
	}
}

// fields sends one block of headers or trailers: name, value, name, value …
func (f *framed) fields(stream uint32, last bool, pairs ...string) {
	f.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: last, BlockFragment: f.block.Bytes(),
	})
}

// header announces the body of HelloPath.
func (f *framed) header(stream uint32, status int) {
	sum := wire.StreamSum(1)
	h := http.Header{}
	sum.Announce(h)
	f.fields(stream, false, ":status", strconv.Itoa(status),
		strings.ToLower(wire.BytesHeader), h.Get(wire.BytesHeader),
		strings.ToLower(wire.ChecksumHeader), h.Get(wire.ChecksumHeader))
}

func (f *framed) body(stream uint32) { _ = f.WriteData(stream, true, wire.Piece(0, wire.PieceSize)) }

func (f *framed) answer(stream uint32) { f.header(stream, http.StatusOK); f.body(stream) }

// each does something with every request until the client leaves.
func (f *framed) each(do func(stream uint32)) {
	for stream := f.request(); stream != 0; stream = f.request() {
		do(stream)
	}
}

const atMost = 1<<31 - 1

var h2misdeeds = []struct {
	name    string
	heading string
	do      h2script
}{
	{"closes before the answer", "cut", func(f *framed, _ int) { f.request() }},
	{"closes after the header", "cut", func(f *framed, _ int) { f.header(f.request(), 200) }},
	{"refuses the stream", "reset", func(f *framed, _ int) {
		f.each(func(s uint32) { _ = f.WriteRSTStream(s, http2.ErrCodeRefusedStream) })
	}},
	{"resets the stream in its body", "reset", func(f *framed, _ int) {
		f.each(func(s uint32) { f.header(s, 200); _ = f.WriteRSTStream(s, http2.ErrCodeInternal) })
	}},
	{"says GOAWAY, then cuts", "cut", func(f *framed, _ int) {
		s := f.request()
		_ = f.WriteGoAway(atMost, http2.ErrCodeNo, nil)
		f.header(s, 200)
		_ = f.WriteData(s, false, []byte("half"))
	}},
	{"ends the stream early", "cut", func(f *framed, _ int) {
		f.each(func(s uint32) { f.header(s, 200); _ = f.WriteData(s, true, []byte("half")) })
	}},
	{"answers 503", "wrong", func(f *framed, _ int) {
		f.each(func(s uint32) { f.header(s, 503); f.body(s) })
	}},
	{"resets the connection", "reset", func(f *framed, _ int) { f.settle(); f.reset() }},
	{"says nothing", "timeout", func(f *framed, _ int) { f.stall() }},
}

func TestEachHTTP2MisdeedIsCountedUnderItsHeading(t *testing.T) {
	t.Parallel()
	config, certificate := identity(t)
	for _, m := range h2misdeeds {
		for _, kind := range []string{load.H2, load.H2Stream} {
			t.Run(kind+" "+m.name, func(t *testing.T) {
				t.Parallel()
				target := targetOf(kind, false, rogue(t, nil, speakH2(m.do)))
				onlyFailures(t, sufferAlone(t, misdeed{kind: kind, heading: m.heading}, target), m.heading)
			})
			t.Run(kind+" with TLS "+m.name, func(t *testing.T) {
				t.Parallel()
				target := targetOf(kind, true, rogue(t, config, speakH2(m.do)))
				target.RootCAs = certificate.Pool
				onlyFailures(t, sufferAlone(t, misdeed{kind: kind, heading: m.heading}, target), m.heading)
			})
		}
	}
}

// GOAWAY is obeyed: streams in flight finish, the next one goes elsewhere,
// and nothing failed.
func TestGOAWAYIsObeyed(t *testing.T) {
	t.Parallel()
	address := rogue(t, nil, speakH2(func(f *framed, n int) {
		if n > 0 {
			f.each(f.answer)
			return
		}
		s := f.request()
		_ = f.WriteGoAway(atMost, http2.ErrCodeNo, nil)
		f.answer(s)
		if late := f.request(); late != 0 {
			_ = f.WriteRSTStream(late, http2.ErrCodeProtocol) // came after GOAWAY
		}
	}))
	k := oneByOne(t, load.H2, address, false, 3)
	if k.Failed != 0 || k.ToldToClose != 1 || k.Retried != 0 || k.IdleClosed != 0 {
		t.Errorf("want 1 told to close and nothing else: %+v", k)
	}
}

// A stream that GOAWAY names as not processed may be sent again: shown as a
// retry, and a failure only where Strict is asked for.
func TestAStreamNotProcessedIsRetried(t *testing.T) {
	t.Parallel()
	unprocessed := speakH2(func(f *framed, n int) {
		if n > 0 {
			f.each(f.answer)
			return
		}
		f.request()
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
	})
	if k := oneByOne(t, load.H2, rogue(t, nil, unprocessed), false, 3); k.Failed != 0 || k.Retried != 1 || k.ToldToClose != 1 {
		t.Errorf("want 1 retried, 1 told to close, 0 failed: %+v", k)
	}
	if k := oneByOne(t, load.H2, rogue(t, nil, unprocessed), true, 3); k.Failed != 1 || k.Strict != 1 || k.Retried != 1 {
		t.Errorf("strict: want 1 failed under that heading: %+v", k)
	}
}

// sufferAlone is suffer with one operation at a time, so that one stream's
// misdeed isn't another one's.
func sufferAlone(t *testing.T, m misdeed, target load.Target) load.Report {
	t.Helper()
	return sufferPlan(t, m, target, load.KindPlan{Concurrency: 1, Connections: 1})
}

// oneByOne does n operations on one connection at a time.
func oneByOne(t *testing.T, kind, address string, strict bool, n int) load.KindReport {
	t.Helper()
	run := begin(t, load.Plan{
		Target: targetOf(kind, false, address), Timeout: 20 * time.Second, Strict: strict,
		StreamDuration: 200 * time.Millisecond,
		Kinds:          []load.KindPlan{{Kind: kind, Concurrency: 1, Connections: 1}},
	})
	until(t, run, "operations", func(r load.Report) bool { return r.OK()+r.Failures() >= n })
	return run.Stop().Kinds[0]
}
