package nodes

import (
	"net"
	"testing"
	"time"
)

// TestConnectionsBeyondTheBoundWait: they are accepted when another one ends, and closing the listener ends the wait.
func TestConnectionsBeyondTheBoundWait(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bounded{Listener: l, free: make(chan struct{}, 1), closed: make(chan struct{})}
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	accept := func() {
		_, err := b.Accept()
		accepted <- err
	}
	go accept()
	select {
	case <-accepted:
		t.Fatal("a second connection was accepted beside the first one")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	first.Close() // a place is given back once
	if err := <-accepted; err != nil {
		t.Errorf("after the first one has ended: %v", err)
	}
	go accept()
	b.Close()
	if err := <-accepted; err == nil {
		t.Error("accepted after the end")
	}
}
