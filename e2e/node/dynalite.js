// Runs dynalite on a free port of the loopback address, prints the port, and ends when standard input does, so that it
// never outlives the tests that started it. Node finds the module by NODE_PATH.
const server = require('dynalite')({ createTableMs: 0, deleteTableMs: 0 });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
