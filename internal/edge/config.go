package edge

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"sluice/internal/core/mapspec"
)

// The variables of a function's environment that are Sluice's own. A function names those that it cannot do without.
const (
	Table      = "SLUICE_TABLE"           // name of the DynamoDB table
	Bucket     = "SLUICE_BUCKET"          // name of the bucket
	RunMachine = "SLUICE_RUN_MACHINE_ARN" // ARN of the state machine that works a run
	Toolexec   = "SLUICE_TOOLEXEC"        // name or ARN of the function that executes calls
	Bus        = "SLUICE_BUS"             // name of the event bus
	LogLevel   = "SLUICE_LOG_LEVEL"       // debug, info (default), warn, error
	// AllowPrivate lets tools reach private addresses, if their provider says so too. Off, because inside a function
	// those are its own runtime and what else is on its network.
	AllowPrivate = "SLUICE_ALLOW_PRIVATE" // true, or anything else for no
	// PublicURL is where the API is, for the links by which people answer; without it there are none.
	PublicURL = "SLUICE_PUBLIC_URL"
	// AllowPublic lets maps publish for everybody, if they say so. Off: what a run publishes is for who may see the run.
	AllowPublic = "SLUICE_ALLOW_PUBLIC" // true, or anything else for no
	// BodyMemory is how many bytes of answers a process holds at once.
	BodyMemory = "SLUICE_BODY_MEMORY" // such as 128MB; gateway.DefaultBodyMemory
)

// Config is what a function knows about where it runs.
type Config struct {
	Table, Bucket, RunMachine, Toolexec, Bus string
	LogLevel                                 slog.Level
	PublicURL                                string
	AllowPrivate, AllowPublic                bool
	BodyMemory                               int64 // 0: the default
	// PathStyle asks for bucket names in the path of URLs: emulators have no names of hosts per bucket.
	PathStyle bool
	// AWS is the configuration of the SDK's clients.
	AWS aws.Config
}

// Read reads the environment by getenv. Every variable that is needed and missing is named in one error.
//
// The SDK's own loader is left out on purpose: a function has its region, its credentials and perhaps an endpoint in
// its environment, and nowhere else; looking for profiles, single sign-on and metadata services costs each cold start
// milliseconds and each zip a megabyte and a half.
func Read(getenv func(string) string, need ...string) (Config, error) {
	c := Config{
		Table: getenv(Table), Bucket: getenv(Bucket), RunMachine: getenv(RunMachine),
		Toolexec: getenv(Toolexec), Bus: getenv(Bus), PublicURL: getenv(PublicURL), AllowPrivate: getenv(AllowPrivate) == "true", AllowPublic: getenv(AllowPublic) == "true",
	}
	var missing []string
	for _, name := range need {
		if getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return c, fmt.Errorf("the function's environment lacks %s; the stack sets them: deploy it again", strings.Join(missing, ", "))
	}
	if size := getenv(BodyMemory); size != "" {
		n, err := mapspec.ParseSize(size)
		if err != nil {
			return c, fmt.Errorf("%s is %q: %w", BodyMemory, size, err)
		}
		c.BodyMemory = n
	}
	if level := getenv(LogLevel); level != "" {
		if err := c.LogLevel.UnmarshalText([]byte(level)); err != nil {
			return c, fmt.Errorf("%s is %q; it is one of debug, info, warn, error", LogLevel, level)
		}
	}
	c.AWS = aws.Config{
		Region:      cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		Credentials: aws.NewCredentialsCache(environment(getenv)),
	}
	if endpoint := getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" {
			return c, fmt.Errorf("AWS_ENDPOINT_URL is not a URL; write for example http://127.0.0.1:4566")
		}
		c.AWS.BaseEndpoint, c.PathStyle = aws.String(endpoint), true
	}
	return c, nil
}
