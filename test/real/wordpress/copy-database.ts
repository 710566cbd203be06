import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { withOnly } from './php-extensions.ts'

const script = `
$from = new SQLite3( $argv[1] );
$to = new SQLite3( $argv[2] );
foreach ( array( $from, $to ) as $one ) $one->busyTimeout( 20000 );
exit( $from->backup( $to ) ? 0 : 1 );`

/** Copies a database while others read and write both: its file alone lacks what is in its write-ahead log. */
export const copyDatabase = async (from: string, to: string): Promise<void> => {
  await promisify(execFile)('php', [...withOnly('sqlite3'), '-r', script, from, to])
}
