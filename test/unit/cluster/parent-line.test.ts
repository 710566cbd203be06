import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

const from = JSON.stringify(pathToFileURL('src/cluster/worker-link.ts').href)

/** Stands still until its stdin ends, and so has not heard by then that its parent is gone. */
const program = `
  import { readFileSync } from 'node:fs'
  import { parentLine } from ${from}
  process.on('uncaughtException', (error) => console.log('uncaught ' + error.code))
  const line = parentLine()
  line.listen(() => {
    console.log('standing still')
    readFileSync(0)
    line.send({ kind: 'alive' })
    console.log('sent')
  })
  line.send({ kind: 'hello' })
`

test('a message to a parent that has just exited is lost, without an error in the worker', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  })
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const ended = Promise.all([once(child, 'exit'), child.stdout && once(child.stdout, 'end')])
  expect(await once(child, 'message')).toMatchObject([{ kind: 'hello' }, undefined])
  child.send({ kind: 'drain' })
  await expect.poll(() => text).toContain('standing still')
  child.disconnect()
  child.stdin?.end()
  expect((await ended)[0]).toEqual([0, null])
  expect(text).toBe('standing still\nsent\n')
})
