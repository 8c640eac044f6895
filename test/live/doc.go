// Package live watches video jobs of the real program as its clients do, by
// server-sent events and over WebSockets, and receives its webhooks. It holds what
// watchers hear against what must be heard: every end, once, also by those who
// came back, and nothing of others. Load measures many watchers; command measure
// prints what it finds.
package live
