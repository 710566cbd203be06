import { type HeldLine, openLine } from '../support/held-line.ts'
import { ownerOf } from '../support/line-owner.ts'
import { pause } from '../support/origin.ts'
import { type CheckedVersions, shownIn } from './checked-versions.ts'

/** One process with its own memory, and a connection that it holds. */
export type Member = {
  readonly line: HeldLine
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
}

const root = '/index.php/site-json/site/v2'
const watched = { id: 1, path: `${root}/posts/1` }
const triesForHit = 40

const get = `GET ${watched.path} HTTP/1.1\r\nHost: gateway\r\n`
const content = '{"title":"x"}'
const put = [
  `PUT ${watched.path} HTTP/1.1`,
  'Host: gateway',
  'Authorization: Bearer writer',
  'Content-Type: application/json',
  'X-Fate: answered',
  `Content-Length: ${content.length}`,
  '',
  content,
].join('\r\n')

const hasHit = async ({ line }: Member): Promise<boolean> => {
  for (let tries = 0; tries < triesForHit; tries += 1) {
    const response = await line.ask(`${get}\r\n`)
    if (response.header('cache-status').includes('hit')) return true
    await pause(10)
  }
  return false
}

/**
 * The first bytes of a read reach a member that is stopped, the last ones follow when another member has answered a
 * write: the kernel delivers the read to the member before any message about the write. False when nothing can be claimed,
 * since there was nothing in memory, or the write failed.
 */
export const readAcrossStop = async (
  stopped: Member,
  other: Member,
  longerMs: number,
  versions: Pick<CheckedVersions, 'raise' | 'check' | 'asOfNow'>,
): Promise<boolean> => {
  if (!(await hasHit(stopped))) return false
  let isWritten = false
  let before = versions.asOfNow()
  stopped.signal('SIGSTOP')
  try {
    stopped.line.send(get)
    await pause(5)
    const written = await other.line.ask(put)
    isWritten = written.status === 200
    if (isWritten)
      versions.raise(watched.id, shownIn(written.text)[0]?.version ?? 0, 'answered across a stop')
    await pause(longerMs)
    before = versions.asOfNow()
    stopped.line.send('\r\n')
    await pause(2)
  } finally {
    stopped.signal('SIGCONT')
  }
  const response = await stopped.line.next()
  if (!isWritten || response.status !== 200) return false
  const told = { text: response.text, status: response.header('cache-status'), by: 'the stopped one' }
  versions.check(told, 'nobody', before)
  return true
}

/** A line to each of the processes that share an address; fewer when one of them is about to end. */
export const lineToEach = async (address: string, pids: readonly number[]): Promise<readonly Member[]> => {
  const found = new Map<number, HeldLine>()
  for (let tries = 0; tries < pids.length * 4 && found.size < pids.length; tries += 1) {
    const line = await openLine(address)
    // Answered by the member that has it from now on.
    await line.ask(`${get}\r\n`).catch(() => undefined)
    const pid = await ownerOf(line.port, pids)
    if (pid === undefined || found.has(pid)) line.close()
    else found.set(pid, line)
  }
  return [...found].map(([pid, line]) => ({ line, signal: (name) => process.kill(pid, name) }))
}
