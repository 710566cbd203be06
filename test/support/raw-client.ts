import { once } from 'node:events'
import { connect } from 'node:net'

/** As long as the first byte of a response may take on a busy machine. */
const maxFirstMs = 10_000

/**
 * Sends bytes as they are and gives back everything that came until the server closed or fell silent. What ends with a close
 * is whole however slow the machine is, so a request says `Connection: close` unless what it is about forbids it.
 */
export const exchangeBytes = async (
  address: string,
  bytes: string | Buffer,
  silenceMs = 3_000,
): Promise<string> => {
  const { hostname, port } = new URL(address)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  await new Promise<void>((resolve) => {
    let timer = setTimeout(resolve, maxFirstMs)
    socket.on('data', () => {
      clearTimeout(timer)
      timer = setTimeout(resolve, silenceMs)
    })
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}
