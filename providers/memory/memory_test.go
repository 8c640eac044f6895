package memory_test

import (
	"errors"
	"testing"

	"stagedoor/providers/memory"
)

func TestABudgetRefusesWhatItHasNoRoomForUntilOthersEnd(t *testing.T) {
	b := memory.New(100)
	first, second := b.Claim(), b.Claim()
	if err := first.Grow(60); err != nil {
		t.Fatal(err)
	}
	for range 3 { // a refusal takes nothing
		if err := second.Grow(50); !errors.Is(err, memory.ErrFull) {
			t.Fatalf("got %v, want ErrFull", err)
		}
	}
	if err := second.Grow(101); !errors.Is(err, memory.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
	if err := first.Grow(41); !errors.Is(err, memory.ErrTooLarge) {
		t.Fatalf("a claim that grows beyond everything: got %v, want ErrTooLarge", err)
	}
	first.End()
	first.End()
	if err := second.Grow(100); err != nil || b.Used() != 100 {
		t.Fatalf("after the first has ended: %v, %d in use", err, b.Used())
	}
	first.Adopt(50)
	if b.Used() != 150 {
		t.Errorf("%d in use, want what was adopted beyond the limit, too", b.Used())
	}
	first.End()
	b.Set(0)
	if err := first.Grow(1 << 40); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestWithoutABudgetThereIsNoBound(t *testing.T) {
	var none *memory.Budget
	c := none.Claim()
	c.Adopt(1)
	if err := c.Grow(1 << 40); err != nil || none.Used() != 0 {
		t.Errorf("%v, %d in use", err, none.Used())
	}
	c.End()
}
