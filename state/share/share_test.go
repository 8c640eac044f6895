package share_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state/share"
)

func refused(t interface{ Fatalf(string, ...any) }, err error) *share.Refused {
	var r *share.Refused
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("got %v, want a *Refused", err)
	}
	return r
}

// TestPoolKeepsItsRules runs generated claims and returns against a model: never more
// is in use than the capacity, no owner gets more than half of what the others leave,
// an owner without anything is served while anything is free, and what is returned can
// be claimed again.
func TestPoolKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(1, 40).Draw(t, "capacity")
		p := share.New("things", capacity, 1)
		held := make(map[string]int64)
		used := func() (sum int64) {
			for _, n := range held {
				sum += n
			}
			return sum
		}
		owner := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			who, n := owner.Draw(t, "owner"), rapid.Int64Range(1, 5).Draw(t, "n")
			others := used() - held[who]
			may := max((capacity-others)/2, 1)
			switch step := rapid.SampledFrom([]string{"take", "give", "move"}).Draw(t, "step"); step {
			case "take":
				r := refused(t, p.Take(who, n))
				want := held[who]+n <= may && used()+n <= capacity
				if (r == nil) != want {
					t.Fatalf("%s has %d, the others %d of %d: take %d: %v", who, held[who], others, capacity, n, r)
				}
				if r != nil && r.Share != (held[who]+n > may) {
					t.Fatalf("refused by %+v", r)
				}
				if r == nil {
					held[who] += n
				}
				if n == 1 && held[who] == 0 && used() < capacity {
					t.Fatalf("%s has nothing and got nothing of %d free ones", who, capacity-used())
				}
			case "give":
				n = min(n, held[who])
				p.Give(who, n)
				held[who] -= n
			case "move":
				to := owner.Draw(t, "to")
				if n = min(n, held[who]); n == 0 || to == who {
					continue
				}
				left := used() - n - held[to]
				r := refused(t, p.Move(who, to, n))
				if (r == nil) != (held[to]+n <= max((capacity-left)/2, 1)) {
					t.Fatalf("move %d from %s to %s: %v", n, who, to, r)
				}
				if r == nil {
					held[who], held[to] = held[who]-n, held[to]+n
				}
			}
			if p.Used() != used() || used() > capacity || p.Held(who) != held[who] {
				t.Fatalf("used %d of %d, the model has %d", p.Used(), capacity, used())
			}
		}
		for who, n := range held {
			p.Give(who, n)
		}
		if p.Used() != 0 || p.Take("late", max(capacity/2, 1)) != nil {
			t.Fatalf("after all was returned %d is used", p.Used())
		}
	})
}

func TestOwnerAloneGetsHalfAndALateOwnerGetsItsPart(t *testing.T) {
	p := share.New("things", 16, 1)
	taken := func(owner string) (n int) {
		for p.Take(owner, 1) == nil {
			n++
		}
		return n
	}
	for i, want := range []int{8, 4, 2, 1, 1} {
		if got := taken(fmt.Sprint(i)); got != want {
			t.Errorf("owner %d got %d of 16, want %d", i, got, want)
		}
	}
	if r := refused(t, p.Take("late", 1)); r == nil || r.Share || r.Pool != "things" {
		t.Errorf("a full pool says %+v", r)
	}
	if r := refused(t, p.Take("0", 1)); r == nil || !r.Share {
		t.Errorf("an owner beyond its share hears %+v", r)
	}
}

func TestLeastAmountIsGrantedBeyondTheShareWhileItIsFree(t *testing.T) {
	p := share.New("bytes", 100, 30)
	p.Adopt("others", 65)
	if err := p.Take("small", 30); err != nil {
		t.Errorf("the least amount: %v", err)
	}
	if r := refused(t, p.Take("small", 1)); r == nil || !r.Share {
		t.Errorf("more than the least amount and the share: %+v", r)
	}
	if r := refused(t, p.Take("late", 10)); r == nil || r.Share {
		t.Errorf("more than there is: %+v", r)
	}
	tiny := share.New("bytes", 10, 30)
	if tiny.Most() != 5 || tiny.Take("a", 6) == nil || tiny.Take("a", 5) != nil {
		t.Error("the least amount is more than half of the pool")
	}
}

func TestPoolWithoutABoundRefusesNothingAndResizesAtOnce(t *testing.T) {
	p := share.New("things", 0, 1)
	if err := p.Take("a", 1<<40); err != nil || p.Most() != 0 {
		t.Fatal(err)
	}
	p.Resize(10)
	if refused(t, p.Take("b", 1)) == nil {
		t.Error("the new capacity does not count")
	}
	p.Give("a", 1<<40)
	if err := p.Take("b", 5); err != nil {
		t.Error(err)
	}
}

func TestClaimsOfManyGoroutinesStayBelowTheCapacity(t *testing.T) {
	p := share.New("things", 10, 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			owner := fmt.Sprint(i % 3)
			for range 500 {
				if p.Take(owner, 1) == nil {
					if p.Used() > 10 {
						t.Error("more is in use than there is")
					}
					p.Give(owner, 1)
				}
			}
		})
	}
	wg.Wait()
	if p.Used() != 0 {
		t.Errorf("%d left", p.Used())
	}
}

func TestAnOwnerThatIsAloneMayHoldNearlyAll(t *testing.T) {
	p := share.New("things", 64, 1)
	alone := true
	p.SetAlone(func(owner string) bool { return alone && owner == "anna" })
	move := func(to string) error {
		if err := p.Take("address", 1); err != nil {
			t.Fatal(err)
		}
		err := p.Move("address", to, 1)
		if err != nil {
			p.Give("address", 1)
		}
		return err
	}
	for held := range 61 {
		if err := move("anna"); err != nil {
			t.Fatalf("with %d of 64: %v", held, err)
		}
	}
	if r := refused(t, move("anna")); r == nil || !r.Share {
		t.Errorf("the last units: %v", r)
	}
	p.Give("anna", 21)
	alone = false
	if r := refused(t, move("anna")); r == nil || !r.Share {
		t.Errorf("with 40 of 64, when there is another owner: %v", r)
	}
	if err := move("bert"); err != nil {
		t.Errorf("the other owner: %v", err)
	}
}
