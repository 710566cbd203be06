import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startProcess, untilReady } from './processes.ts'

const support = fileURLToPath(new URL('./processes.ts', import.meta.url))

const says = (program: { output(): string }, text: string) => async () => {
  if (!program.output().includes(text)) throw new Error(`has not said ${text}`)
}

/** Gone, or dead and only not yet waited for. */
async function isGone(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
}

test('a program that ends by itself is reported with its exit code and what it wrote', async () => {
  const program = startProcess('sh', ['-c', 'echo out; echo err >&2; exit 7'])
  expect(await program.ended).toBe(7)
  await untilReady(program, says(program, 'err'))
  expect(program.output()).toContain('out')
})

test('stop sends one SIGTERM, not two, and waits for an orderly end', async () => {
  const counting = `let n = 0
    process.on('SIGTERM', () => { n += 1; setTimeout(() => { console.log('signals ' + n); process.exit(3) }, 200) })
    setInterval(() => {}, 1000); console.log('up')`
  const program = startProcess(process.execPath, ['-e', counting])
  await untilReady(program, says(program, 'up'))
  expect(await program.stop()).toBe(3)
  expect(program.output()).toContain('signals 1')
})

test('a program that ignores SIGTERM is killed, and so are the children of an ended one', async () => {
  const program = startProcess('sh', ['-c', 'trap "" TERM; sleep 300 & echo child $!; wait'])
  await untilReady(program, says(program, 'child'))
  const child = Number(/child (\d+)/.exec(program.output())?.[1])
  expect(await program.stop(100)).toBe('SIGKILL')
  await expect.poll(() => isGone(child)).toBe(true)
})

test('a program does not outlive the test that was killed', async () => {
  const killed = `import { startProcess } from ${JSON.stringify(support)}
    const program = startProcess('sleep', ['300'])
    console.log(program.pid)
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 100)`
  const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', killed])
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  await once(parent, 'exit')
  await expect.poll(() => isGone(Number(line.toString()))).toBe(true)
})

test('a program that ends before it is ready is reported with what it wrote', async () => {
  const program = startProcess('sh', ['-c', 'echo no such port; exit 1'])
  const never = () => Promise.reject(new Error('not yet'))
  await expect(untilReady(program, never)).rejects.toThrow(/ended with 1 before.*\nno such port/)
})

test('of a long output the last lines are kept, each of them whole', async () => {
  const script =
    'for (let line = 0; line < 9000; line += 1) console.log(JSON.stringify({ line, of: { some: 1 } }))'
  const program = startProcess(process.execPath, ['-e', script])
  await untilReady(program, says(program, '"line":8999,'))
  const lines = program.output().trimEnd().split('\n')
  const numbers = lines.map((line) => (JSON.parse(line) as { line: number }).line)
  expect(numbers.at(-1)).toBe(8999)
  expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] as number) + at))
  expect(numbers[0]).toBeGreaterThan(0)
})
