package cost

// Prices are what AWS charges in US East (N. Virginia), us-east-1, on demand, in US dollars, before any free tier,
// discount or tax. Prices change, and differ between regions: compare them with the pages that are named here before
// anything depends on them. The figure of Step Functions was read on its own page, which lists regions; the other pages
// fill their tables in the browser, and their figures were compared with what is quoted from them elsewhere.
const (
	// AWS Step Functions pricing (aws.amazon.com/step-functions/pricing), "State transitions pricing table", standard
	// workflows: $0.025 per 1,000 state transitions, retries included.
	perTransition = 0.025 / 1_000

	// AWS Lambda pricing (aws.amazon.com/lambda/pricing): $0.20 per million requests; arm64, first tier (7.5 billion
	// GB-seconds a month): $0.0000133334 per GB-second. x86 is $0.0000166667.
	perInvocation = 0.20 / 1_000_000
	perGBSecond   = 0.0000133334

	// Amazon DynamoDB pricing for on-demand capacity (aws.amazon.com/dynamodb/pricing/on-demand), standard table class:
	// $0.625 per million write request units, $0.125 per million read request units (halved in November 2024).
	perWriteUnit = 0.625 / 1_000_000
	perReadUnit  = 0.125 / 1_000_000

	// Amazon S3 pricing (aws.amazon.com/s3/pricing), "Requests & data retrievals", S3 Standard: $0.005 per 1,000 PUT, COPY,
	// POST and LIST requests, $0.0004 per 1,000 GET requests.
	perPut = 0.005 / 1_000
	perGet = 0.0004 / 1_000
)

// PricesOf says for people whose prices these are.
const PricesOf = "AWS list prices of us-east-1, on demand, arm64, as of November 2026"
