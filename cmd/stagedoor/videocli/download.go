package videocli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// extensions completes the default file name of each variant.
var extensions = map[string]string{"video": ".mp4", "thumbnail": ".webp", "spritesheet": ".jpg"}

// downloadCommand returns the command that saves the video of a job, its thumbnail or its spritesheet.
func (a app) downloadCommand(r *gateway) *cobra.Command {
	d := videoclient.Download{}
	var wait, asJSON bool
	c := &cobra.Command{
		Use: "download ID", Short: "Save the video or a picture of a completed job",
		Args: cli.ExactArgs(1, "the id of a job"),
		Long: `Save the video or a picture of a completed job. The file has another name
until it is complete and its length has been checked. A download that breaks off resumes
where it stopped.`,
		Example: `  stagedoor videos download video_0198 -o boat.mp4
  stagedoor videos download video_0198 --variant thumbnail --wait`,
		RunE: func(c *cobra.Command, args []string) error {
			d.ID = args[0]
			ending, ok := extensions[d.Variant]
			if !ok {
				return fmt.Errorf("%w: --variant %q: use video, thumbnail or spritesheet", cli.ErrUsage, d.Variant)
			}
			if d.Path == "" {
				d.Path = fileName(d.ID) + ending
			}
			t := a.newPrinter(asJSON)
			return a.withClient(c.Context(), r, t, func(ctx context.Context, client *videoclient.Client) error {
				return t.runWithScreen(ctx, func(ctx context.Context) error {
					if wait {
						if err := watchOne(ctx, client, d.ID, t); err != nil {
							return err
						}
					}
					return t.download(ctx, client, d)
				})
			})
		},
	}
	c.Flags().StringVarP(&d.Path, "output", "o", "", "`file` to save as (default: the id, in the current directory)")
	c.Flags().StringVar(&d.Variant, "variant", "video", "video, thumbnail or spritesheet")
	c.Flags().BoolVar(&d.Replace, "force", false, "replace an existing file")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended before the download")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: one line when the file is complete")
	cli.CompleteWords(c, "variant", "video", "thumbnail", "spritesheet")
	cli.CompleteFiles(c, "output", "mp4", "webp", "jpg")
	return c
}

// fileName turns an id into a safe file name, because the id comes from the command line.
func fileName(id string) string {
	name := []rune(cli.Shorten(id, 80))
	for i, c := range name {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			name[i] = '_'
		}
	}
	return string(name)
}
