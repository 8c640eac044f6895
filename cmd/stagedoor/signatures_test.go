package main

import (
	"strconv"
	"strings"
	"testing"
)

func TestOneOwnerCannotPushOutSignaturesOfOthers(t *testing.T) {
	c := newSignatureCache(100)
	for i := range 10 {
		c.Remember("ann", strconv.Itoa(i), "of ann")
	}
	for i := range 1000 {
		c.Remember("eve", strconv.Itoa(i), "of eve")
	}
	c.Remember("eve", "large", strings.Repeat("x", 200*signatureSlot))
	c.Remember("eve", "half", strings.Repeat("x", 50*signatureSlot))
	for i := range 10 {
		if s, ok := c.Recall("ann", strconv.Itoa(i)); !ok || s != "of ann" {
			t.Errorf("call %d of ann: got %q, %v, want her signature", i, s, ok)
		}
	}
	if s, ok := c.Recall("eve", "half"); !ok || len(s) != 50*signatureSlot {
		t.Errorf("the last signature of eve has %d bytes, %v", len(s), ok)
	}
	if _, ok := c.Recall("eve", "large"); ok {
		t.Error("a signature larger than the cache was kept")
	}
	if _, ok := c.Recall("bob", "1"); ok {
		t.Error("an owner got the signature of another")
	}
}

func TestSignaturesTakeAtMostTheirSlots(t *testing.T) {
	c := newSignatureCache(100)
	for i := range 1000 {
		// A call id that comes again replaces its signature.
		c.Remember("ann", strconv.Itoa(i%70), strings.Repeat("x", i%7*signatureSlot))
	}
	bytes := 0
	for i := range 70 {
		text, _ := c.Recall("ann", strconv.Itoa(i))
		bytes += len(text)
	}
	if bytes > 100*signatureSlot || c.byCall.Len() > 100 {
		t.Errorf("%d signatures with %d bytes, want at most 100 slots", c.byCall.Len(), bytes)
	}
	c.Remember("ann", "again", "first")
	c.Remember("ann", "again", "second")
	if s, _ := c.Recall("ann", "again"); s != "second" {
		t.Errorf("got %q, want the signature that came last", s)
	}
}
