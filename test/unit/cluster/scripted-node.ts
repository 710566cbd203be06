import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A node that is its own cluster, and answers what a test wants; `usual` is what any node says, and without a response it ends the connection. */
export type ScriptedNode = {
  readonly port: number
  /** How often each command came, by its first word. */
  readonly counts: Map<string, number>
  close(): void
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`

const usual = (words: readonly string[], port: number): string => {
  switch (words.slice(0, words[0] === 'cluster' ? 2 : 1).join(' ')) {
    case 'hello':
      return "-ERR unknown command 'HELLO'\r\n"
    case 'info':
      return bulk('loading:0')
    case 'cluster INFO':
      return bulk('cluster_state:ok')
    case 'cluster SLOTS':
      return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${bulk('127.0.0.1')}:${port}\r\n`
    default:
      return '+OK\r\n'
  }
}

const commandIn = /^\*(\d+)\r\n((?:\$\d+\r\n[^\r]*\r\n)*)/

/** The commands that are there as a whole, and what is left. */
const readCommands = (text: string): readonly [(readonly string[])[], string] => {
  const commands: (readonly string[])[] = []
  let rest = text
  for (;;) {
    const [whole = '', count, parts = ''] = commandIn.exec(rest) ?? []
    const words = [...parts.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map(([, word = '']) => word)
    if (whole === '' || words.length < Number(count)) return [commands, rest]
    commands.push(words)
    rest = rest.slice(whole.length)
  }
}

export const startScriptedNode = async (
  response: (words: readonly string[], port: number) => string | undefined,
): Promise<ScriptedNode> => {
  const counts = new Map<string, number>()
  const sockets = new Set<Socket>()
  const take = (socket: Socket, words: readonly string[]): void => {
    const name = words[0] ?? ''
    counts.set(name, (counts.get(name) ?? 0) + 1)
    const said = response(words, port)
    if (said === undefined) socket.destroy()
    else socket.write(said === 'usual' ? usual(words, port) : said, 'latin1')
  }
  const server = createServer((socket) => {
    let text = ''
    sockets.add(socket.on('error', () => undefined))
    socket.on('data', (chunk) => {
      const [commands, rest] = readCommands(text + chunk)
      text = rest
      for (const words of commands) take(socket, words)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    counts,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
