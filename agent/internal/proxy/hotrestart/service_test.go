package hotrestart

import "testing"

// Out of service is a wish that lasts: it outlives handoffs, and undrain ends it.
func TestRule13OutOfServiceLastsAcrossHandoffs(t *testing.T) {
	s := newScript(t).serving(0)
	s.on(OutOfService{true}).does(Withdraw{}, Health{0, true}).doesNo(Publish{}, Signal{})
	s.on(OutOfService{true}).doesNo(Withdraw{}, Health{})
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1).does(PublishUnready{1}, Health{1, true}).doesNo(Publish{})
	s.on(OutOfService{false}).does(Publish{1}, Health{Epoch: 1}).doesNo(Withdraw{})
	s.on(Exited{Epoch: 0}).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(2).doesNo(Health{})

	early := newScript(t).on(Triggered{By: TriggerStart}).on(OutOfService{true}).doesNo(Withdraw{}, Health{})
	early.good(ModeRelay).up(0).does(PublishUnready{}, Health{0, true}).doesNo(Publish{})
	early.on(Stop{By: "test"}).on(OutOfService{false}).doesNo(Publish{}, Health{})
}
