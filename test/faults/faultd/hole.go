package faultd

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// A Hole is an address that takes part in no handshake: connecting to it neither
// succeeds nor fails. It is a socket nobody accepts on, whose queue is full, so
// that the kernel drops what knocks.
type Hole struct {
	fd    int
	addr  string
	queue []net.Conn
}

// Dig makes one on loopback.
func Dig() (*Hole, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("faultd: %w", err)
	}
	h := &Hole{fd: fd}
	if err := h.fill(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Hole) fill() error {
	if err := syscall.Bind(h.fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("faultd: bind: %w", err)
	}
	if err := syscall.Listen(h.fd, 0); err != nil {
		return fmt.Errorf("faultd: listen: %w", err)
	}
	name, err := syscall.Getsockname(h.fd)
	if err != nil {
		return fmt.Errorf("faultd: %w", err)
	}
	in, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return errors.New("faultd: no IPv4 address")
	}
	h.addr = fmt.Sprintf("127.0.0.1:%d", in.Port)
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
func (h *Hole) Addr() string { return h.addr }

// Close gives the address back.
func (h *Hole) Close() error {
	for _, c := range h.queue {
		_ = c.Close()
	}
	return syscall.Close(h.fd)
}
