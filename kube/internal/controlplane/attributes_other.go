//go:build !linux

package controlplane

import "syscall"

// attributes has no way to end a process with its parent on systems other than Linux.
// There, a process survives a test process that is killed.
func attributes() *syscall.SysProcAttr { return nil }
