package share_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state/share"
)

func TestOneOwnerCannotPushOutCachedValuesOfOthers(t *testing.T) {
	c := share.NewCache[int](100, 0, nil)
	for i := range 10 {
		c.Put("ann", strconv.Itoa(i), i, 1)
	}
	for i := range 1000 {
		c.Put("eve", strconv.Itoa(i), -i, 1)
	}
	c.Put("eve", "large", 1, 101)
	c.Put("eve", "half", 1, 50)
	for i := range 10 {
		if v, ok := c.Get("ann", strconv.Itoa(i)); !ok || v != i {
			t.Errorf("value %d of ann: %d, %v", i, v, ok)
		}
	}
	if _, ok := c.Get("eve", "half"); !ok {
		t.Error("the newest value of eve is lost")
	}
	if _, ok := c.Get("eve", "large"); ok {
		t.Error("a value larger than the cache was kept")
	}
	if _, ok := c.Get("bob", "1"); ok {
		t.Error("an owner got the value of another")
	}
}

func TestCachedValuesExpire(t *testing.T) {
	now := time.Unix(0, 0)
	c := share.NewCache[int](10, time.Hour, func() time.Time { return now })
	if !c.Add("ann", "k", 1) || c.Add("ann", "k", 2) {
		t.Error("a value is added once")
	}
	now = now.Add(time.Hour - 1)
	if v, ok := c.Get("ann", "k"); !ok || v != 1 {
		t.Errorf("before the time: %d, %v", v, ok)
	}
	now = now.Add(1)
	if _, ok := c.Get("ann", "k"); ok || c.Len() != 0 {
		t.Errorf("after the time: %v, %d kept", ok, c.Len())
	}
	if !c.Add("ann", "k", 3) {
		t.Error("an expired value keeps its place")
	}
	c.Remove("ann", "k")
	if !c.Add("ann", "k", 4) {
		t.Error("a removed value keeps its place")
	}
}

// A value of several slots may push out itself, so that its owner has no more than a share.
func TestALargeValueDoesNotTakeTheSlotsOfOtherOwners(t *testing.T) {
	c := share.NewCache[int](3, 0, nil)
	c.Put("b", "k", 1, 2)
	c.Put("c", "k", 1, 1)
	c.Put("a", "k", 1, 3)
	if _, ok := c.Get("a", "k"); ok {
		t.Error("one owner has all slots, though three use the cache")
	}
	c.Put("a", "k", 2, 1)
	if v, ok := c.Get("a", "k"); !ok || v != 2 {
		t.Errorf("a value of one slot is %d, %v", v, ok)
	}
}

// TestACacheHoldsAtMostItsSlots compares generated calls with a map of what was put last.
func TestACacheHoldsAtMostItsSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		c := share.NewCache[int](size, 0, nil)
		last, slots := map[string]int{}, map[string]int{}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
			key := fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "key"))
			switch rapid.IntRange(0, 4).Draw(t, "call") {
			case 0:
				c.Remove(owner, key)
				delete(last, owner+key)
			default:
				n := rapid.IntRange(1, 3).Draw(t, "slots")
				c.Put(owner, key, step, n)
				if n <= size {
					last[owner+key], slots[owner+key] = step, n
				}
			}
			used := 0
			for name := range last {
				v, ok := c.Get(name[:1], name[1:])
				if ok && v != last[name] {
					t.Fatalf("%s is %d, want what was put last, %d", name, v, last[name])
				}
				if ok {
					used += slots[name]
				}
			}
			if used > size {
				t.Fatalf("values of %d slots in %d", used, size)
			}
			// A value of several slots may push out itself where its owner has the most.
			kept := last[owner+key] == step && slots[owner+key] == 1 && step > 0
			if v, ok := c.Get(owner, key); kept && (!ok || v != step) {
				t.Fatalf("the newest value was not kept: %d, %v", v, ok)
			}
		}
	})
}
