package wire

import (
	"bytes"
	"net/http"
	"testing"
	"time"
)

func TestPieces(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int
	}{{0, 1}, {99 * time.Millisecond, 1}, {100 * time.Millisecond, 2}, {2 * time.Second, 21}} {
		if got := Pieces(c.d); got != c.want {
			t.Errorf("%v has %d pieces, want %d", c.d, got, c.want)
		}
	}
	for i := range 1000 {
		if len(Piece(i, PieceSize)) != PieceSize {
			t.Fatalf("piece %d is short", i)
		}
		if bytes.Equal(Piece(i, PieceSize), Piece(i+1, PieceSize)) {
			t.Fatalf("pieces %d and %d are the same: an exchange would go unseen", i, i+1)
		}
	}
}

func TestSumSeesLengthContentAndOrder(t *testing.T) {
	sum := func(pieces ...int) Sum {
		var s Sum
		for _, i := range pieces {
			_, _ = s.Write(Piece(i, PieceSize))
		}
		return s
	}
	if sum(0, 1, 2) != StreamSum(3) {
		t.Error("StreamSum isn't the sum of its pieces")
	}
	for _, other := range []Sum{sum(0, 1), sum(0, 2, 1), sum(0, 1, 3), sum(0, 1, 2, 3)} {
		if other == StreamSum(3) {
			t.Error("another body has the same sum")
		}
	}
}

func TestAnnouncement(t *testing.T) {
	h := http.Header{}
	want := StreamSum(4)
	want.Announce(h)
	if got, ok := Announced(h); !ok || got != want {
		t.Errorf("read back %v, %t", got, ok)
	}
	for name, value := range map[string]string{BytesHeader: "x", ChecksumHeader: "123456789"} {
		bad := h.Clone()
		bad.Set(name, value)
		if _, ok := Announced(bad); ok {
			t.Errorf("%s: %s was taken", name, value)
		}
		bad.Del(name)
		if _, ok := Announced(bad); ok {
			t.Errorf("taken without %s", name)
		}
	}
}

func TestCodec(t *testing.T) {
	in, shared := []byte("frame"), []byte("xxxxx")
	out, err := Codec{}.Marshal(&in)
	if err != nil || !bytes.Equal(out, in) {
		t.Errorf("marshal: %q, %v", out, err)
	}
	var got []byte
	copy(shared, in)
	if err := (Codec{}).Unmarshal(shared, &got); err != nil {
		t.Error(err)
	}
	shared[0] = '!' // gRPC reuses its buffer
	if !bytes.Equal(got, in) {
		t.Errorf("unmarshal: %q", got)
	}
	if _, err := (Codec{}).Marshal("text"); err == nil {
		t.Error("a string was marshalled")
	}
	if err := (Codec{}).Unmarshal(nil, "text"); err == nil {
		t.Error("a string was unmarshalled")
	}
}
