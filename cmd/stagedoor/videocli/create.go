package videocli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// createOptions are the flags that say what to do with a job once it has been created.
type createOptions struct {
	watch, replace, asJSON bool
	download               string
}

// flags adds the flags of what happens after the job was created.
func (f *createOptions) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "watch the job until it ends")
	c.Flags().StringVarP(&f.download, "download", "o", "", "watch the job, then save the video as `file`")
	c.Flags().BoolVar(&f.replace, "force", false, "let --download replace an existing file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON: one line for every state of the job")
	cli.CompleteFiles(c, "download", "mp4")
}

// createCommand returns the command that begins a job from a prompt. Defaults of the model, the size and the length
// are the gateway's, so the flags are empty unless they are given.
func (a app) createCommand(r *gateway) *cobra.Command {
	var w videoclient.VideoOptions
	var f createOptions
	c := &cobra.Command{
		Use: "create PROMPT", Short: "Create a video job", Args: cli.ExactArgs(1, "a prompt"),
		Long: `Create a video job and print its id. Without --watch and --download the command
exits as soon as the gateway has accepted the job.`,
		Example: `  stagedoor videos create 'a paper boat in the rain' --watch
  stagedoor videos create 'slow zoom' --reference boat.png --size 1280x720 --seconds 8 -o boat.mp4`,
		RunE: func(c *cobra.Command, args []string) error {
			w.Prompt = args[0]
			return a.startJob(
				c.Context(),
				r,
				&f,
				func(ctx context.Context, client *videoclient.Client) (*videoclient.Job, error) {
					return client.Create(ctx, w)
				},
			)
		},
	}
	c.Flags().StringVar(&w.Model, "model", "", "model (default: the gateway's, video-2)")
	c.Flags().StringVar(&w.Size, "size", "", "WIDTHxHEIGHT (default: the gateway's, 720x1280)")
	c.Flags().StringVar(&w.Seconds, "seconds", "", "length (default: the gateway's, 4)")
	c.Flags().
		StringVar(&w.Reference, "reference", "", "picture `file` for the first frame, of the video's size")
	f.flags(c)
	cli.CompleteWords(c, "size", "720x1280", "1280x720", "1024x1792", "1792x1024")
	cli.CompleteWords(c, "seconds", "4", "8", "12")
	cli.CompleteFiles(c, "reference", "png", "jpg", "jpeg", "webp")
	return c
}

// remixCommand returns the command that begins a job from a completed one.
func (a app) remixCommand(r *gateway) *cobra.Command {
	var f createOptions
	c := &cobra.Command{
		Use: "remix ID PROMPT", Short: "Create a video job from a completed one",
		Args:    cli.ExactArgs(2, "the id of a completed job and a prompt"),
		Example: `  stagedoor videos remix video_0198 'the same at night' --watch`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.startJob(
				c.Context(),
				r,
				&f,
				func(ctx context.Context, client *videoclient.Client) (*videoclient.Job, error) {
					return client.Remix(ctx, args[0], args[1])
				},
			)
		},
	}
	f.flags(c)
	return c
}

// startJob creates a job, then watches it and downloads its video if the flags ask for that. Without either flag, it
// prints the id alone, for scripts.
func (a app) startJob(ctx context.Context, r *gateway, f *createOptions,
	make func(context.Context, *videoclient.Client) (*videoclient.Job, error)) error {
	if f.download != "" { // check before the job costs money
		if err := videoclient.CheckDestination(f.download, f.replace); err != nil {
			return err
		}
	}
	t := a.newPrinter(f.asJSON)
	return a.withClient(ctx, r, t, func(ctx context.Context, client *videoclient.Client) error {
		job, err := make(ctx, client)
		if err != nil {
			return err
		}
		if !f.watch && f.download == "" {
			if f.asJSON {
				t.printJob(job)
				return nil
			}
			_, err := fmt.Fprintln(a.Out, job.ID)
			return err
		}
		return t.runWithScreen(ctx, func(ctx context.Context) error {
			t.printJob(job)
			if err := watchOne(ctx, client, job.ID, t); err != nil || f.download == "" {
				return err
			}
			return t.download(ctx, client, videoclient.Download{ID: job.ID, Path: f.download, Replace: f.replace})
		})
	})
}
