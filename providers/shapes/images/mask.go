package images

import (
	"context"
	"errors"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
)

// toAlpha converts a mask of black and white to one of this shape, in which the part to change
// is transparent.
func toAlpha(ctx context.Context, owner string, f *picture.File) (*picture.File, error) {
	converted, err := mask.ToAlpha(ctx, owner, f)
	var flaw mask.Flaw
	if errors.As(err, &flaw) {
		return nil, dialogue.Invalid("mask", flaw.Error())
	}
	return converted, err
}
