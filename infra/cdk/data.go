package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"
)

// data is where everything durable is.
type data struct {
	table  awsdynamodb.ITable
	bucket awss3.Bucket
}

func (s *stack) newData() {
	s.data.bucket = s.newBucket()
	if s.settings.Table != "" {
		s.data.table = awsdynamodb.Table_FromTableName(s.scope, jsii.String("Table"), &s.settings.Table)
		return
	}
	s.data.table = s.newTable()
}

// newTable makes the table; internal/dynamo names its attributes.
func (s *stack) newTable() awsdynamodb.Table {
	return awsdynamodb.NewTable(s.scope, jsii.String("Table"), &awsdynamodb.TableProps{
		PartitionKey:        &awsdynamodb.Attribute{Name: jsii.String("p"), Type: awsdynamodb.AttributeType_STRING},
		SortKey:             &awsdynamodb.Attribute{Name: jsii.String("s"), Type: awsdynamodb.AttributeType_STRING},
		TimeToLiveAttribute: jsii.String("x"),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		DeletionProtection: &s.settings.KeepData,
		RemovalPolicy:      s.removal(),
	})
}

func (s *stack) newBucket() awss3.Bucket {
	bucket := awss3.NewBucket(s.scope, jsii.String("Bucket"), &awss3.BucketProps{
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		EnforceSSL:        jsii.Bool(true),
		RemovalPolicy:     s.removal(),
		LifecycleRules: &[]*awss3.LifecycleRule{
			{
				// An upload is an input on its way: sealing a run copies it.
				Id:         jsii.String("uploads"),
				Prefix:     jsii.String("uploads/"),
				Expiration: awscdk.Duration_Days(jsii.Number(s.settings.UploadDays)),
			},
			{
				Id:                                  jsii.String("parts"),
				AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1)),
			},
		},
	})
	accept(bucket, "AwsSolutions-S1", "The bucket is reached by this stack's functions and by links that they sign; CloudTrail data events tell more than access logs and are the account's choice.")
	return bucket
}

// newLogs makes a log group with the retention of the settings. Logs are no data: they go with the stack.
func (s *stack) newLogs(id string) awslogs.LogGroup {
	return awslogs.NewLogGroup(s.scope, &id, &awslogs.LogGroupProps{
		Retention:     retentions[s.settings.LogDays],
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

// retentions are the numbers of days that CloudWatch Logs knows, as far as they are of use here.
var retentions = map[int]awslogs.RetentionDays{
	1: awslogs.RetentionDays_ONE_DAY, 3: awslogs.RetentionDays_THREE_DAYS, 7: awslogs.RetentionDays_ONE_WEEK,
	14: awslogs.RetentionDays_TWO_WEEKS, 30: awslogs.RetentionDays_ONE_MONTH, 60: awslogs.RetentionDays_TWO_MONTHS,
	90: awslogs.RetentionDays_THREE_MONTHS, 180: awslogs.RetentionDays_SIX_MONTHS, 365: awslogs.RetentionDays_ONE_YEAR,
	731: awslogs.RetentionDays_TWO_YEARS, 1827: awslogs.RetentionDays_FIVE_YEARS, 3653: awslogs.RetentionDays_TEN_YEARS,
}
