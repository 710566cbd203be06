import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { goodResponse } from './good-response.ts'

const program = `
const { createServer } = require('node:http')
const [backlog, connection] = process.argv.slice(1)
const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'Content-Type': 'application/json', Connection: connection })
  response.end(${JSON.stringify(goodResponse)})
})
server.listen({ port: 0, host: '127.0.0.1', backlog: Number(backlog) }, () => console.log(server.address().port))
`

/** A server in its own process, which can be stopped with its connections open. */
export type StoppableServer = {
  readonly port: number
  stop(): Promise<void>
  /** Runs on, and waits until it answers. */
  proceed(): Promise<void>
  close(): Promise<void>
}

const responses = async (port: number): Promise<boolean> => {
  const signal = AbortSignal.timeout(200)
  return fetch(`http://127.0.0.1:${port}/`, { signal, headers: { Connection: 'close' } }).then(
    async (response) => (await response.text()) === goodResponse,
    () => false,
  )
}

/**
 * `dropsPackets`: while it is stopped its accept queue of one connection is kept full, so that the kernel drops every further SYN,
 * like a firewall.
 */
export const startStoppableServer = async (dropsPackets: boolean): Promise<StoppableServer> => {
  const parameters = dropsPackets ? ['1', 'close'] : ['511', 'keep-alive']
  const child: ChildProcess = spawn(process.execPath, ['-e', program, ...parameters], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const port = Number(line.toString())
  const fillers: Socket[] = []
  return {
    port,
    async stop() {
      child.kill('SIGSTOP')
      if (!dropsPackets) return
      for (let i = 0; i < 4; i += 1) {
        const filler = connect(port, '127.0.0.1')
        filler.on('error', () => {})
        fillers.push(filler)
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    },
    async proceed() {
      for (const filler of fillers.splice(0)) filler.destroy()
      child.kill('SIGCONT')
      for (let tries = 0; tries < 50; tries += 1) if (await responses(port)) return
      throw new Error('the server does not answer any more')
    },
    async close() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
