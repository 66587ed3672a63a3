// Package shardrec trains recommendation models whose embedding tables are larger than one device.
//
// It is a thin layer over the C API (shardrec.h has the manual): handles are types with Close, which may be
// called more than once and in any order; statuses are errors of type *Error; tensors are slices, which the
// library reads and writes in place and does not keep.
package shardrec

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"shardrec.org/shardrec/internal/capi"
)

func init() {
	capi.Convert = errorOf
	capi.Report = func(kind string) {
		slog.Warn("shardrec: a " + kind + " was not closed; the garbage collector did it. Others of this type are not reported.")
	}
	if !capi.Linked {
		return // every call says what to install
	}
	if version := capi.Api_version(); version < APIVersion {
		panic(fmt.Sprintf("libshardrec serves version %d of its API; this package needs %d or later", version, APIVersion))
	}
}

// Hash64 is XXH3-64, the same value in every language.
func Hash64(seed uint64, bytes []byte) uint64 { return capi.Hash64(seed, bytes) }

// LogMessage is a message of the library's log.
type LogMessage struct {
	Level LogLevel
	Rank  int // of which it tells; -1: none
	Text  string
}

// NextLogMessage takes the oldest message of the library's log, and waits so long for one; nil when none came.
func NextLogMessage(timeout time.Duration) (*LogMessage, error) {
	var level, rank int32
	var text string
	err := capi.Log_next(int32(min(timeout/time.Millisecond, math.MaxInt32)), &level, &rank, &text)
	if err != nil || text == "" {
		return nil, err
	}
	return &LogMessage{LogLevel(level), int(rank), text}, nil
}

// ForwardLog passes the messages of the library's log on to a logger until ctx ends; on a goroutine of its own.
func ForwardLog(ctx context.Context, logger *slog.Logger) error {
	levels := map[LogLevel]slog.Level{LogLevelDebug: slog.LevelDebug, LogLevelInfo: slog.LevelInfo, LogLevelWarning: slog.LevelWarn}
	for ctx.Err() == nil {
		message, err := NextLogMessage(200 * time.Millisecond)
		if err != nil {
			return err
		}
		if message == nil {
			continue
		}
		level, known := levels[message.Level]
		if !known {
			level = slog.LevelError
		}
		logger.Log(ctx, level, message.Text, "rank", message.Rank)
	}
	return nil
}
