package faultd

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Blackhole is an address that takes part in no handshake: connecting to it neither
// succeeds nor fails. It is a socket without accept whose queue is full, so that the
// kernel drops new connections.
type Blackhole struct {
	fd    int
	addr  string
	queue []net.Conn
}

// NewBlackhole makes one on a loopback address. The error says which system call failed.
func NewBlackhole() (*Blackhole, error) {
	fd, addr, err := bound()
	if err != nil {
		return nil, err
	}
	h := &Blackhole{fd: fd, addr: addr}
	if err := h.fill(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Closed is a loopback address that refuses connections: it is bound as long as the
// process lives, so that no other process gets it, and it has no listener.
var Closed = sync.OnceValues(func() (addr string, err error) {
	_, addr, err = bound()
	return addr, err
})

// bound is a socket with an address on loopback, and that.
func bound() (fd int, addr string, err error) {
	if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err != nil {
		return 0, "", fmt.Errorf("faultd: %w", err)
	}
	if addr, err = bind(fd); err != nil {
		return 0, "", fmt.Errorf("faultd: %w", errors.Join(err, syscall.Close(fd)))
	}
	return fd, addr, nil
}

// bind gives a socket a free port on 127.0.0.1 and returns the address.
func bind(fd int) (addr string, err error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return "", err
	}
	in, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return "", errors.New("no IPv4 address")
	}
	return fmt.Sprintf("127.0.0.1:%d", in.Port), nil
}

// fill fills the queue of connections that no accept takes, until the kernel drops new ones. The smallest backlog still
// admits a few.
func (h *Blackhole) fill() error {
	if err := syscall.Listen(h.fd, 0); err != nil {
		return fmt.Errorf("faultd: listen: %w", err)
	}
	for range 16 {
		c, err := net.DialTimeout("tcp", h.addr, 150*time.Millisecond)
		if err != nil {
			return nil // full
		}
		h.queue = append(h.queue, c)
	}
	return errors.New("faultd: the queue does not fill")
}

// Addr is host:port.
func (h *Blackhole) Addr() string { return h.addr }

// Close gives the address back.
func (h *Blackhole) Close() error {
	for _, c := range h.queue {
		_ = c.Close()
	}
	return syscall.Close(h.fd)
}
