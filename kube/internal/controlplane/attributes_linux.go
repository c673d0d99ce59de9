package controlplane

import "syscall"

// attributes makes the kernel kill a process when the thread that created it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
