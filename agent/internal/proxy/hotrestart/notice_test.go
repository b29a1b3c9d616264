package hotrestart

import "testing"

// What a service manager is told, through a life.
func TestNotices(t *testing.T) {
	s := newScript(t)
	told := func(want Notice) {
		t.Helper()
		if got := s.state.notice(0); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	s.on(Triggered{By: TriggerStart})
	told(Notice{Status: "starting"})
	s.good(ModeRelay).up(0)
	told(Notice{Served: true, Status: "serving, epoch 0 serves"})
	s.on(Triggered{By: TriggerSignal})
	told(Notice{Served: true, Changing: true, Status: "preparing, epoch 0 serves"})
	s.after(1).on(Prepared{ID: s.state.Reading.ID, Failed: &Refusal{Step: "validate", Text: "no such field\nat line 7"}})
	told(Notice{Served: true, Status: "serving, epoch 0 serves; epoch 1 failed: validate: no such field"})
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Pid: 1})
	told(Notice{Served: true, Changing: true, Status: "preparing, epoch 0 serves, epoch 1 is starting; epoch 1 failed: validate: no such field"})
	s.after(1).on(WentLive{1}).on(Verified{1})
	told(Notice{Served: true, Status: "draining, epoch 1 serves"})
	s.on(OutOfService{true})
	told(Notice{Served: true, Status: "draining, epoch 1 serves, drained as asked"})
	s.on(Stop{By: "test"})
	told(Notice{Served: true, Stopping: true, Status: "stopping, epoch 1 serves, drained as asked"})
}
