package envoy

import (
	"fmt"
	"reflect"
	"testing"
)

// A story is what happens to a relay, and what it sends each time.
type relayStep struct {
	in   relayInput
	want []relayOutput
}

func asked(r Request) relayInput    { return relayInput{request: request(r)} }
func asks(r Request) relayOutput    { return relayOutput{ask: request(r)} }
func told(r Request) relayOutput    { return relayOutput{say: request(r)} }
func answers(r Request) relayOutput { return relayOutput{answer: r} }

var (
	parentDied  = relayInput{gone: true}
	parentSays  = relayInput{answered: true}
	overdue     = relayInput{overdue: true}
	committed   = relayInput{commit: true}
	delivers    = relayOutput{deliver: true}
	nothingSent []relayOutput
)

func sends(o ...relayOutput) []relayOutput { return o }

func TestRelayState(t *testing.T) {
	for name, story := range map[string]struct {
		state relayState
		steps []relayStep
	}{
		"a handoff": {steps: []relayStep{
			{asked(ShutdownAdmin), sends(asks(ShutdownAdmin))},
			{parentSays, sends(delivers)},
			{asked(PassListenSocket), sends(asks(PassListenSocket))},
			{parentSays, sends(delivers)},
			{asked(DrainListeners), nothingSent},
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{parentSays, sends(delivers)},
			{committed, sends(told(DrainListeners))},
			{committed, nothingSent},
			{asked(DrainListeners), sends(told(DrainListeners))},
			{asked(Terminate), nothingSent},
		}},
		"a commit before anything is withheld": {steps: []relayStep{
			{committed, nothingSent},
			{asked(DrainListeners), sends(told(DrainListeners))},
		}},
		"with UDP Envoy's own timer ends the parent": {state: relayState{passTerminate: true}, steps: []relayStep{
			{committed, nothingSent},
			{asked(Terminate), sends(told(Terminate))},
		}},
		"but never one that serves: the timer runs on while a newcomer is taken back": {state: relayState{passTerminate: true}, steps: []relayStep{
			{asked(DrainListeners), nothingSent},
			{asked(Terminate), nothingSent},
			{committed, sends(told(DrainListeners), told(Terminate))},
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
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{parentDied, sends(answers(StatsRequest))},
			{parentDied, nothingSent},
			{asked(StatsRequest), sends(answers(StatsRequest))},
		}},
		"a parent that dies after its answer": {steps: []relayStep{
			{asked(PassListenSocket), sends(asks(PassListenSocket))},
			{parentSays, sends(delivers)},
			{parentDied, nothingSent},
			{asked(PassListenSocket), sends(answers(PassListenSocket))},
		}},
		"nobody drains or ends a parent that is gone": {state: relayState{passTerminate: true}, steps: []relayStep{
			{asked(DrainListeners), nothingSent},
			{parentDied, nothingSent},
			{committed, nothingSent},
			{asked(DrainListeners), nothingSent},
			{asked(Terminate), nothingSent},
		}},
		"a parent that is stopped while it is asked for stats": {steps: []relayStep{
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{overdue, sends(answers(StatsRequest))},
			{overdue, nothingSent},
			{asked(StatsRequest), sends(answers(StatsRequest))}, // it has a question already
			{parentSays, nothingSent},
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{parentSays, sends(delivers)},
		}},
		"and goes on when something else is asked": {steps: []relayStep{
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{overdue, sends(answers(StatsRequest))},
			{asked(PassListenSocket), nothingSent},
			{overdue, nothingSent}, // sockets are the parent's to give
			{parentSays, sends(asks(PassListenSocket))},
			{parentSays, sends(delivers)},
		}},
		"or dies then": {steps: []relayStep{
			{asked(StatsRequest), sends(asks(StatsRequest))},
			{overdue, sends(answers(StatsRequest))},
			{asked(PassListenSocket), nothingSent},
			{parentDied, sends(answers(PassListenSocket))},
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
