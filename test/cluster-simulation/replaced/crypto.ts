import { currentProcess } from '../world.ts'

export * from 'node:crypto'

export const randomBytes = (length: number): Buffer => {
  const { random } = currentProcess()
  const bytes = Buffer.alloc(length)
  for (let i = 0; i < length; i += 1) bytes[i] = Math.floor(random() * 256)
  return bytes
}
