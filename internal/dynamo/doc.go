// Package dynamo keeps the table port on DynamoDB. It owns the shape of stored items, the reading of whole answers
// (unprocessed keys, pages) and the repetition of requests: throttling never reaches a caller unless it lasts for a
// minute, and a write whose answer was lost is settled where that can be known. It refuses everything that the port
// does not have: no transactions, no indexes, no scans.
//
// # Items
//
// The table has the partition key p and the sort key s (strings). Besides, an item has v (number, the version), d (binary,
// the data; left out when empty), x (number, the expiry in epoch seconds; left out for never) and w (binary, the mark of
// the conditional write that made it).
//
// # Lost answers
//
// A request that times out may have been carried out. Repeating a conditional put then meets its own item and fails on
// its condition, which must not be reported as a conflict: the caller would think that somebody else had won. Nor is an item
// with our version and our data proof that it was us, since another process may have decided the same. So every
// conditional put writes a random mark, and a failed condition behind a lost answer is settled by reading it: our mark
// means success; any other leaves open what happened, which is what the error then says.
package dynamo
