// Package videos tests video jobs from outside: the program is started between
// the program's own simulator and a client, and killed in every state of a job.
package videos
