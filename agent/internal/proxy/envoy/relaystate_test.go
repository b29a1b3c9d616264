package envoy

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// A story is what happens to a relay, and what it sends each time.
type relayStep struct {
	in   relayInput
	want []relayOutput
}

func asked(r Request) relayInput    { return relayInput{datagram: request(r)} }
func passes(r Request) relayOutput  { return relayOutput{pass: request(r)} }
func answers(r Request) relayOutput { return relayOutput{answer: r} }

var (
	parentDied  = relayInput{gone: true}
	committed   = relayInput{commit: true}
	taken       = relayInput{taken: true}
	begins      = relayOutput{part: beginning}
	nothingSent []relayOutput
)

func finishes(r Request) relayOutput       { return relayOutput{answer: r, part: rest} }
func sends(o ...relayOutput) []relayOutput { return o }

func TestRelayState(t *testing.T) {
	for name, story := range map[string]struct {
		state relayState
		steps []relayStep
	}{
		"a handoff": {steps: []relayStep{
			{asked(ShutdownAdmin), sends(passes(ShutdownAdmin))},
			{asked(PassListenSocket), sends(passes(PassListenSocket))},
			{asked(StatsRequest), sends(passes(StatsRequest))},
			{asked(DrainListeners), nothingSent},
			{asked(StatsRequest), sends(passes(StatsRequest))},
			{committed, sends(passes(DrainListeners))},
			{committed, nothingSent},
			{asked(DrainListeners), sends(passes(DrainListeners))},
			{asked(Terminate), nothingSent},
		}},
		"a commit before anything is withheld": {steps: []relayStep{
			{committed, nothingSent},
			{asked(DrainListeners), sends(passes(DrainListeners))},
		}},
		"with UDP Envoy's own timer ends the parent": {state: relayState{passTerminate: true}, steps: []relayStep{
			{committed, nothingSent},
			{asked(Terminate), sends(passes(Terminate))},
		}},
		"but never one that serves: the timer runs on while a newcomer is taken back": {state: relayState{passTerminate: true}, steps: []relayStep{
			{asked(DrainListeners), nothingSent},
			{asked(Terminate), nothingSent},
			{committed, sends(passes(DrainListeners), passes(Terminate))},
			{committed, nothingSent},
		}},
		"the parent keeps its admin": {state: relayState{answerAdmin: true}, steps: []relayStep{
			{asked(ShutdownAdmin), sends(answers(ShutdownAdmin))},
			{parentDied, nothingSent}, // and nothing is outstanding
			{asked(StatsRequest), sends(answers(StatsRequest))},
		}},
		"a parent that dies before anything was asked": {steps: []relayStep{
			{parentDied, nothingSent},
			{asked(ShutdownAdmin), sends(answers(ShutdownAdmin))},
			{asked(PassListenSocket), sends(answers(PassListenSocket))},
		}},
		"a parent that dies with a request outstanding": {steps: []relayStep{
			{asked(StatsRequest), sends(passes(StatsRequest))},
			{parentDied, sends(begins)},
			{taken, sends(finishes(StatsRequest))},
			{taken, nothingSent},
			{parentDied, nothingSent},
			{asked(StatsRequest), sends(answers(StatsRequest))},
		}},
		"a parent that dies after its answer": {steps: []relayStep{
			{asked(PassListenSocket), sends(passes(PassListenSocket))},
			{parentDied, sends(begins)},
			{asked(StatsRequest), sends(finishes(StatsRequest))},
			{taken, nothingSent}, // it was seen too late
			{asked(PassListenSocket), sends(answers(PassListenSocket))},
		}},
		"what needs no answer finishes none": {steps: []relayStep{
			{asked(StatsRequest), sends(passes(StatsRequest))},
			{parentDied, sends(begins)},
			{asked(DrainListeners), nothingSent},
			{committed, nothingSent}, // there is nobody to drain
			{asked(DrainListeners), sends(answers(DrainListeners))},
			{asked(StatsRequest), sends(finishes(StatsRequest))},
		}},
		"unknown": {steps: []relayStep{
			{relayInput{datagram: []byte("?")}, sends(relayOutput{pass: []byte("?")})},
			{parentDied, nothingSent},
			{relayInput{datagram: []byte("?")}, sends(answers(UnknownRequest))},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			state := story.state
			for i, step := range story.steps {
				before := state
				next, got := state.next(step.in)
				if !reflect.DeepEqual(before, state) {
					t.Errorf("step %d changed its argument", i)
				}
				if fmt.Sprint(got) != fmt.Sprint(step.want) {
					t.Errorf("step %d, %+v: %v, want %v", i, step.in, got, step.want)
				}
				state = next
			}
		})
	}
}

// Whatever is outstanding when the parent dies, the two parts make one message.
func TestAnAnswerInTwoParts(t *testing.T) {
	for _, r := range []Request{ShutdownAdmin, PassListenSocket, StatsRequest} {
		answer := answerFor(r, time.Unix(1<<40, 0))
		parts := append(append([]byte(nil), answerBegun...), restOf(answer)...)
		if len(parts) != frameHeader+partedLength || parts[frameHeader-1] != partedLength {
			t.Errorf("%v: %d bytes: % x", r, len(parts), parts)
		}
		if got := parts[frameHeader : frameHeader+len(answer)-frameHeader]; string(got) != string(answer[frameHeader:]) {
			t.Errorf("%v: % x, want it to begin with % x", r, parts, answer)
		}
	}
}
