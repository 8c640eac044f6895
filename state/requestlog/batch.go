package requestlog

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// placeBits are the low bits of a place, which tell records of one microsecond apart.
const placeBits = 10

// Place returns the first place of the records that began at a time.
func Place(t time.Time) int64 { return max(t.UnixMicro(), 0) << placeBits }

// TimeOf returns the time of a place in microseconds since 1970.
func TimeOf(place int64) int64 { return place >> placeBits }

// SetPlaces sets the places of a batch. It increases counter for each record, which tells records of one microsecond
// apart.
func SetPlaces(records []Record, counter *int64) {
	for i := range records {
		*counter++
		records[i].At = Place(records[i].Began) | *counter&(1<<placeBits-1)
	}
}

// Arrange sets the places of a batch and sorts it by them, because requests end in another order than they begin, and
// indexes are faster with what ascends.
func Arrange(records []Record, counter *int64) {
	SetPlaces(records, counter)
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
}

// GroupOwner returns the owner under which Count has the requests that users made as members of a group. No user and no
// key is named so.
func GroupOwner(group string) string { return "group:" + strings.ToLower(group) }

// Minute names the counts of an owner, or of all if Owner is "", in one minute since 1970.
type Minute struct {
	Owner string
	At    int64
}

// Sums count a batch by minutes and sum it up by hours, for a store to add. The Step of an hour is the hour since
// 1970.
type Sums struct {
	Minutes map[Minute]*Counts
	Hours   map[Spent]*Spent
}

// NewSums returns the sums of no records.
func NewSums() Sums { return Sums{make(map[Minute]*Counts), make(map[Spent]*Spent)} }

// Add adds requests that began in one minute and that have the same AppendKind and the same Slow. r is one of them with
// the sums of their amounts.
func (s *Sums) Add(r *Record, requests int64) {
	owners := append(make([]string, 0, 3), "", r.Owner)
	if r.Group != "" {
		owners = append(owners, GroupOwner(r.Group))
	}
	for _, owner := range owners {
		minute := Minute{owner, r.Began.Unix() / 60}
		c := s.Minutes[minute]
		if c == nil {
			c = new(Counts)
			s.Minutes[minute] = c
		}
		c.add(r, requests)
	}
	if r.Attempts == 0 {
		return // it was refused, and clients can name any model
	}
	name := Spent{Step: int(r.Began.Unix() / 3600), Owner: r.Owner, Key: r.Key, Model: r.Model, Provider: r.Provider,
		App: r.App}
	sum := s.Hours[name]
	if sum == nil {
		sum = new(name)
		s.Hours[name] = sum
	}
	sum.Requests += requests
	sum.Input, sum.Output, sum.MicroUSD = sum.Input+r.Input, sum.Output+r.Output, sum.MicroUSD+r.Cost
}

func (c *Counts) add(r *Record, requests int64) {
	c.All += requests
	if r.Failed() {
		c.Failed += requests
	}
	if r.Slow() {
		c.Slow += requests
	}
	if r.Losses != "" {
		c.Lossy += requests
	}
}

// Add adds other counts.
func (c *Counts) Add(other *Counts) {
	c.All, c.Failed = c.All+other.All, c.Failed+other.Failed
	c.Slow, c.Lossy = c.Slow+other.Slow, c.Lossy+other.Lossy
}

// Bars returns empty bars of a width, the minutes since 1970 from which on they reach and before which they end, and
// the number of minutes of each.
func Bars(from, to time.Time, width time.Duration) (bars []Bar, first, end, minutes int64) {
	minutes = max(int64(width/time.Minute), 1)
	first, end = from.Unix()/60, (to.Unix()+59)/60
	for at := first; at < end; at += minutes {
		bars = append(bars, Bar{From: time.Unix(at*60, 0)})
	}
	return bars, first, end, minutes
}
