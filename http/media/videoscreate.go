package media

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"stagedoor/actors/videojob"
	"stagedoor/http/accesslog"
	"stagedoor/http/media/videos"
	"stagedoor/providers/video"
	"stagedoor/providers/video/mp4"
	"stagedoor/state/work"
)

// newJob describes the job to actors/videojob.
func (m *maker) newJob() (*videojob.Request, error) {
	asked, err := m.ask.Fingerprint()
	if err != nil {
		return nil, err
	}
	a := m.ask
	o := &videojob.Request{Plan: m.plan,
		Spec: video.Spec{
			Operation:  a.Operation,
			Prompt:     a.Prompt,
			Seconds:    a.Seconds,
			Size:       a.Size,
			Characters: a.Characters,
			User:       a.User,
		},
		Video: work.Video{
			Owner:     m.owner(),
			Key:       m.key.ID,
			Request:   accesslog.RequestID(m.w),
			Account:   m.key.Charged(),
			Operation: string(a.Operation),
			Model:     m.model(),
			Prompt:    a.Prompt,
			Size:      a.Size.String(),
			Seconds:   int64(a.Seconds),
			Billable:  int64(a.Seconds),
			Once:      m.once,
			Asked:     asked,
		}}
	if m.handlers.Ledger == nil {
		o.Video.Account = ""
	}
	switch {
	case m.source != nil:
		err = m.setSource(o)
	case a.Upload != nil:
		setSeconds(o, int64(a.Upload.Seconds()), a.Seconds)
	}
	return o, err
}

// setSource makes the job continue the source's video at the provider that has it.
func (m *maker) setSource(o *videojob.Request) error {
	source := m.source
	v, spec := &o.Video, &o.Spec
	if _, err := fmt.Sscanf(source.Size, "%dx%d", &spec.Size.Width, &spec.Size.Height); err != nil {
		return fmt.Errorf("video %s has size %q", source.ID, source.Size)
	}
	v.Size, v.Extensions = source.Size, source.Extensions
	spec.Source = &video.Source{ID: source.UpstreamID}
	setSeconds(o, source.Seconds, m.ask.Seconds)
	if spec.Operation == video.Remix {
		v.RemixedFrom = source.ID
	}
	plan, err := videojob.AtProvider(o.Plan, source.Provider)
	o.Plan = plan
	return err
}

// setSeconds sets the length of a job whose source has a number of seconds, and how many of them are
// charged: those that an extension adds, and otherwise all.
func setSeconds(o *videojob.Request, source int64, added int) {
	v, spec := &o.Video, &o.Spec
	v.Seconds, v.Billable = source, source
	if spec.Operation == video.Extend {
		spec.Added = added
		v.Seconds, v.Billable = source+int64(added), int64(added)
		v.Extensions++
	}
	spec.Seconds = int(v.Seconds)
}

// keepFiles stores the client's files, so that they outlive the process.
func (m *maker) keepFiles(o *videojob.Request) (err error) {
	switch a := m.ask; { // no operation accepts both
	case a.Reference != nil:
		o.Spec.Reference, err = m.keep(o, a.Reference.Reader(),
			video.File{Name: a.Reference.Name, Type: a.Reference.MediaType}, videos.MaxReference)
	case a.Upload != nil:
		o.Spec.Source = new(video.Source)
		o.Spec.Source.File, err = m.keep(o, a.Upload.Reader(), video.File{Name: a.Upload.Name, Type: mp4.MediaType},
			videos.MaxUpload)
	}
	return err
}

// keep stores an upload for the job, which may have to send it again after a restart of the gateway.
func (m *maker) keep(o *videojob.Request, content io.Reader, f video.File, limit int64) (*video.File, error) {
	// No job runs for so long.
	const life = 24 * time.Hour
	info, err := m.handlers.Content.store.Put(string(m.owner()), content, f.Type, limit, m.handlers.Env.Now().Add(life))
	if err != nil {
		e := notKept(err)
		if e.Status == http.StatusServiceUnavailable {
			e.Message = "the gateway cannot keep uploads at the moment, try again later"
		}
		return nil, e
	}
	o.Video.Files = []string{string(info.ID)}
	f.ID, f.Size = string(info.ID), info.Size
	return &f, nil
}
