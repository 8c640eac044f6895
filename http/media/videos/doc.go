// Package videos is the clients' side of video jobs: what they may ask for and
// how a job looks to them. It decides
// over bytes and knows neither HTTP nor actors, so that a reply, an event and a
// message show the same object for a job.
package videos
