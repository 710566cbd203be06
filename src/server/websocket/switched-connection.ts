import { Duplex } from 'node:stream'
import { acceptOf } from '../../http/websocket-accept.ts'

const endOfHead = '\r\n\r\n'
const longestHead = 16 * 1024

/**
 * A connection to an upstream that has agreed to a WebSocket already (src/upstream sent the handshake, as it sends every request), for
 * a client of `ws`, which always begins with a handshake of its own: that one is answered here.
 */
export class SwitchedConnection extends Duplex {
  readonly #connection: Duplex
  readonly #protocol: string | undefined
  #head: string | undefined = ''

  constructor(connection: Duplex, protocol: string | undefined) {
    super()
    this.#connection = connection
    this.#protocol = protocol
    connection.on('error', () => {})
    connection.once('close', () => this.destroy())
  }

  #response(head: string): void {
    const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1] ?? ''
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${acceptOf(key)}`]
    if (this.#protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${this.#protocol}`)
    this.push(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}${endOfHead}`)
    const connection = this.#connection
    connection.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) connection.pause()
    })
    connection.once('end', () => this.push(null))
  }

  override _read(): void {
    if (this.#head === undefined) this.#connection.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const connection = this.#connection
    if (this.#head === undefined) {
      if (connection.write(chunk)) done()
      else connection.once('drain', done)
      return
    }
    this.#head += chunk.toString('latin1')
    if (this.#head.includes(endOfHead)) {
      this.#response(this.#head)
      this.#head = undefined
    } else if (this.#head.length > longestHead) {
      done(new RangeError('the handshake is too long'))
      return
    }
    done()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#connection.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#connection.destroy()
    done(error)
  }
}
