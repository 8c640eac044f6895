package config

import "time"

// Videos are the times of video jobs.
type Videos struct {
	Deadline Duration `yaml:"deadline" doc:"time after which a job fails"`
	Keep     Duration `yaml:"keep" doc:"time for which ended jobs are listed after their content has expired"`
	Wait     Duration `yaml:"wait" doc:"time for which a reply waits until the provider has accepted the job; afterwards it says that the job is queued"`
	Most     int      `yaml:"most" doc:"largest number of unfinished jobs"`
}

var defaultVideos = Videos{Deadline: Duration(30 * time.Minute), Keep: Duration(30 * 24 * time.Hour),
	Wait: Duration(15 * time.Second), Most: 4096}

// The bounds of the settings. No upload is kept for longer than a day, which bounds the deadline, and every job under
// way is in memory, which bounds their number.
const (
	minVideoDeadline = Duration(10 * time.Second)
	maxVideoDeadline = Duration(24 * time.Hour)
	maxVideoWait     = Duration(time.Minute)
	maxVideos        = 100_000
)

// checkVideos checks the times and the number of video jobs.
func (c *Config) checkVideos(d *decoder) {
	v := &c.Videos
	if v.Deadline < minVideoDeadline || v.Deadline > maxVideoDeadline {
		d.at("videos.deadline", "expected 10s to 24h")
	}
	if v.Keep <= 0 {
		d.at("videos.keep", "expected more than 0s")
	}
	if v.Wait <= 0 || v.Wait > maxVideoWait {
		d.at("videos.wait", "expected more than 0s and at most 1m")
	}
	if v.Most < 1 || v.Most > maxVideos {
		d.at("videos.most", "expected 1 to %d", maxVideos)
	}
}
