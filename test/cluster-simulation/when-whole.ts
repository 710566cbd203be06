import { Readable } from 'node:stream'
import type { GatewayResponse } from '../../src/http/message.ts'
import type { Process } from './world.ts'

/** Calls `ended` with the content of a response once it is whole; with undefined when it breaks off or is cut. `piece`: as it comes. */
export const whenWhole = (
  process: Process,
  { content }: GatewayResponse,
  ended: (content: string | undefined) => void,
  piece: (text: string) => void = () => {},
): void => {
  if (!(content instanceof Readable)) {
    ended(process.isCut ? undefined : (content?.toString() ?? ''))
    return
  }
  let text = ''
  let isOver = false
  const over = (whole: string | undefined): void => {
    if (isOver) return
    isOver = true
    ended(process.isCut ? undefined : whole)
  }
  content.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    if (!process.isCut) piece(chunk.toString())
  })
  content.on('end', () => over(text))
  content.on('error', () => over(undefined))
  content.on('close', () => over(undefined))
}
