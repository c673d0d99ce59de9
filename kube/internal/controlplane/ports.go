package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are chosen below the range from which the kernel takes the local ports of outgoing
// connections (32768 and above). From that range, a client that reconnects to a component
// that is down could be given the port of the component and connect to itself.
const (
	firstPort = 20000
	portCount = 10000
	portTries = 1000
)

// ports holds the ports that a control plane has reserved. A reservation is a lock on a
// file: it keeps other test processes away while no component listens on the port, and ends
// with this process.
type ports []*os.File

// reserve returns a port that is free on the loopback address and not reserved.
func (p *ports) reserve() (string, error) {
	dir := filepath.Join(os.TempDir(), "berth-controlplane-ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for range portTries {
		port := strconv.Itoa(firstPort + rand.IntN(portCount))
		file, err := os.OpenFile(filepath.Join(dir, port), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return "", err
		}
		if lock(file) && free(port) {
			*p = append(*p, file)
			return port, nil
		}
		file.Close()
	}
	return "", fmt.Errorf("no free port among %d tries", portTries)
}

// lock reports whether this process is the only one to hold the file.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func free(port string) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// release gives up all reservations. The files remain: removing a file that another process
// is about to lock would let two processes reserve the same port.
func (p *ports) release() error {
	var errs []error
	for _, file := range *p {
		errs = append(errs, file.Close())
	}
	*p = nil
	return errors.Join(errs...)
}
