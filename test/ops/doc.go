// Package ops tests the gateway as those see it who run it: restarts under load,
// drains, what a service manager hears, what is handed to the next process. The
// program itself is started and stopped; nothing of its inside is known here.
package ops
