package turns

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

const slots = 2

func TestWorkOfOneOwnerDoesNotDelayThatOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(slots)
		next := make(chan struct{})
		var served []string
		ask := func(owner string) {
			go func() {
				if err := q.Acquire(context.Background(), owner); err != nil {
					t.Error(err)
				}
				<-next
				served = append(served, owner)
				q.Release(owner)
			}()
			synctest.Wait()
		}
		for range 50 {
			ask("ann")
		}
		if q.used != 1 {
			t.Errorf("an owner alone holds %d of %d slots, want half", q.used, q.slots)
		}
		for range 50 {
			ask("bob")
		}
		ask("cem")
		for range 101 {
			next <- struct{}{}
			synctest.Wait()
		}
		if at := slices.Index(served, "cem"); at > 4 {
			t.Errorf("an owner that came last was served after %d others, want at most two of each", at)
		}
		if q.used+len(q.held)+len(q.waiting)+len(q.turns) != 0 {
			t.Errorf("left over: %+v", q)
		}
	})
}

func TestWorkWhoseClientLeavesMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, left := New(slots), errors.New("the client has left")
		for i := range slots {
			if err := q.Acquire(context.Background(), strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		for range 10 {
			go func() {
				if err := q.Acquire(ctx, "ann"); !errors.Is(err, left) {
					t.Errorf("got %v, want %v", err, left)
				}
			}()
		}
		synctest.Wait()
		cancel(left)
		synctest.Wait()
		for i := range slots {
			q.Release(strconv.Itoa(i))
		}
		if q.used+len(q.held)+len(q.waiting)+len(q.turns) != 0 {
			t.Errorf("left over: %+v", q)
		}
	})
}
