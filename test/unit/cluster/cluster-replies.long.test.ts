import { expect, test } from 'vitest'
import { scriptOn } from '../../../src/cluster/redis/connections.ts'
import { pause } from '../../support/origin.ts'
import { connectedTo } from './connected-to.ts'
import { startScriptedNode } from './scripted-node.ts'

const timeoutMs = 1_000

/** What the node says to a script, the last of it again and again; undefined: it ends the connection. */
const ask = async (responses: (port: number) => readonly (string | undefined)[], asking: string) => {
  let turn = 0
  const node = await startScriptedNode(([name], port) => {
    if (name === 'asking') return asking
    if (name !== 'evalsha') return 'usual'
    const list = responses(port)
    turn += 1
    return list[Math.min(turn, list.length) - 1]
  })
  const connection = await connectedTo(node, { cluster: true, timeoutMs })
  const run = scriptOn(connection, 'return 1')
  const said = await run(['{a}'], []).then(String, (error: Error) => error.message)
  return { said, node }
}

const tryAgain = '-TRYAGAIN Multiple keys request during rehashing of slot\r\n'
const elsewhere = (port: number): string => `-ASK 15495 127.0.0.1:${port}\r\n`

test.each([
  ['some keys are on their way, and then all are', [tryAgain, tryAgain], [':1\r\n'], '+OK\r\n', /^1$/],
  ['keys that are on their way for ever', [tryAgain], [], '+OK\r\n', /TRYAGAIN|timed out/],
  // The last time that it is sent again: a pipeline would end the process here.
  ['keys on their way, and elsewhere in the end', Array(16).fill(tryAgain), ['ask'], '+OK\r\n', /./],
  ['elsewhere, where who comes must not ask', [], ['ask'], '-NOPERM no permissions\r\n', /ASK/],
  ['a cluster that is down', ['-CLUSTERDOWN Hash slot not served\r\n'], [], '+OK\r\n', /^CLUSTERDOWN/],
] as const)('%s', async (_, first, then, asking, said) => {
  const responses = (port: number) => [
    ...first,
    ...then.map((one) => (one === 'ask' ? elsewhere(port) : one)),
  ]
  expect((await ask(responses, asking)).said).toMatch(said)
  // An unhandled rejection would end the process by then.
  await pause(timeoutMs)
})

test('a connection that ends with a command in flight: it may have been carried out, and is not sent again', async () => {
  const { said, node } = await ask(() => [undefined, ':1\r\n'], '+OK\r\n')
  expect(said).toMatch(/^Connection is closed/)
  await pause(timeoutMs)
  expect(node.counts.get('evalsha')).toBe(1)
})
