package cmd

import "aether.internal/agent/internal/proxy/hotrestart"

// ExitNoSupervisor is proxyctl's code when nobody answers at the control socket.
const ExitNoSupervisor = 7

// exitCode is a row of the table in docs/reference.md.
type exitCode struct {
	code    int
	plus    bool // plus a signal's number
	meaning string
	then    string // what to do
}

var supervisorExits = []exitCode{
	{hotrestart.ExitOK, false, "stopped as asked (SIGTERM, SIGINT), drained", "nothing"},
	{hotrestart.ExitUnexpected, false, "an error that has no code of its own", "read the last line of the log; report it"},
	{hotrestart.ExitUsage, false, "wrong flags or variables, or values that exclude each other", "correct what the sentence names"},
	{hotrestart.ExitBootstrap, false, "first start: the bootstrap is missing, unreadable or refused by Envoy", "correct the bootstrap; Envoy's own words are in the log"},
	{hotrestart.ExitBinary, false, "the Envoy binary can't be run: missing, not executable, of another architecture, or it hangs", "correct `--envoy-path` or the binary"},
	{hotrestart.ExitFirstEpoch, false, "the first epoch exited, or was not LIVE and verified by `--handoff-deadline`", "the log says what was missing"},
	{hotrestart.ExitTaken, false, "base-id, seat or a socket belong to somebody else", "the sentence names them; choose another `--base-id`, `--state-dir` or `--control-socket`"},
	{hotrestart.ExitNewest, false, "the newest epoch exited by itself; its code is in the log", "read Envoy's last lines"},
	{hotrestart.ExitSignal, true, "signal *n* ended the newest epoch (139: SIGSEGV, 137: SIGKILL, often for lack of memory)", "read Envoy's last lines and the kernel's log"},
}

var proxyctlExits = []exitCode{
	{hotrestart.ExitOK, false, "done; for `reload --wait`: committed, or there was nothing to do", "nothing"},
	{hotrestart.ExitUnexpected, false, "the reload or upgrade was refused, failed, gave way to a newer one or did not end in time; the doctor found something to do; or the supervisor answered with an error", "read what was printed"},
	{hotrestart.ExitUsage, false, "wrong flags or variables", "correct what the sentence names"},
	{ExitNoSupervisor, false, "no supervisor answers at the control socket", "is it running, as this user, with this `--control-socket` or `--base-id`?"},
}
