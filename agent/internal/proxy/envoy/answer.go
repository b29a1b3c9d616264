package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// answer is a body whose size is limited.
type answer struct{ body io.Reader }

func (a answer) text() (string, error) {
	body, err := io.ReadAll(a.body)
	return string(body), err
}

// members decodes those members of an object that into names, and reads no
// further than the last of them.
func (a answer) members(into map[string]any) error {
	d := json.NewDecoder(a.body)
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	for found := 0; found < len(into); {
		if !d.More() { // at its end, or cut short
			return expect(d, json.Delim('}'))
		}
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		var skipped json.RawMessage
		value, wanted := into[fmt.Sprint(name)]
		if wanted {
			found++
		} else {
			value = &skipped
		}
		if err := d.Decode(value); err != nil {
			return notJSON(err)
		}
	}
	return nil
}

// rest reads to the end, so that the connection can be used again.
func (a answer) rest() error {
	_, err := io.Copy(io.Discard, a.body)
	return err
}

// each hands over the elements of the list called key, one at a time; a
// missing list is an empty one. An answer cut short is an error.
func (a answer) each(key string, element func(json.RawMessage) error) error {
	d := json.NewDecoder(a.body)
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		if name == key {
			err = elements(d, element)
		} else {
			var skipped json.RawMessage
			err = notJSON(d.Decode(&skipped))
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return err
	}
	return a.rest()
}

func elements(d *json.Decoder, element func(json.RawMessage) error) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return notJSON(err)
		}
		if err := element(raw); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if got != want {
		return fmt.Errorf("the answer is not what was asked for: %v where %v was expected", got, want)
	}
	return nil
}

func notJSON(err error) error {
	if err == nil || errors.Is(err, errTooLarge) {
		return err
	}
	return fmt.Errorf("the answer is not complete JSON: %w", err)
}

var errTooLarge = errors.New("the answer is too large")

// limited fails, instead of ending, where the limit is exceeded: half an
// answer must not pass for a whole one.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
