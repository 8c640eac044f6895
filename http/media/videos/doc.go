// Package videos is the clients' side of video jobs: what they may ask for and
// how a job looks to them. It decides
// over bytes and knows neither HTTP nor actors, so that whoever shows a job, as a
// reply, an event or a message, shows the same object.
package videos
