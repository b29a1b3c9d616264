package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// read takes the whole body, up to its limit; its deadline is the server's
// ReadTimeout, which net/http lifts when the body is complete.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, err
	}
	return body, nil
}

// decode reads one JSON value and refuses fields it doesn't know: a misspelt
// "force" must not become a reload without it. No body at all means no wishes.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
