import { describe } from 'vitest'
import { describeWith } from '../../support/requirements.ts'
import { reasonWithoutArchives } from './archives.ts'

/** `describe` for a suite that needs real plugins: without their archives it is skipped, with the reason. */
export const describeSite = (title: string, body: () => void): void => {
  const reason = reasonWithoutArchives()
  if (reason === undefined) {
    describeWith('mariadb', title, body)
    return
  }
  process.stderr.write(`skipped: ${title} ${reason}\n`)
  describe.skip(`${title} (${reason})`, body)
}
