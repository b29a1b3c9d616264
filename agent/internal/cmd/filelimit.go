package cmd

import "syscall"

// raiseFileLimit gives us, and so every Envoy, all the open files that the hard
// limit allows: an epoch needs its listeners times its workers and two for each
// busy connection, and a newcomer that lacks them aborts (fact 25). Go raises
// its own soft limit, but hands children the old one until somebody sets it by
// this very call.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
