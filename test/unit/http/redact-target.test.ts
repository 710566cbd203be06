import { expect, test } from 'vitest'
import { redactTarget } from '../../../src/http/targets.ts'

test.each([
  ['/x', '/x'],
  ['/x?page=2', '/x?page=2'],
  ['/x?token=a&page=2', '/x?token=[redacted]&page=2'],
  ['/x?access_token=a', '/x?access_token=[redacted]'],
  ['/x?Access-Token=a', '/x?Access-Token=[redacted]'],
  ['/x?%74oken=a', '/x?%74oken=[redacted]'],
  ['/x?_wpnonce=a', '/x?_wpnonce=[redacted]'],
  ['/x?X-Amz-Signature=a&X-Amz-Date=b', '/x?X-Amz-Signature=[redacted]&X-Amz-Date=b'],
  ['/x?token=', '/x?token=[redacted]'],
  ['/x?token', '/x?token'],
  ['/x?%zz=a', '/x?%zz=[redacted]'],
  ['/x?a=b=c?token=d', '/x?a=b=c?token=d'],
])('%s is shown as %s', (target, shown) => {
  expect(redactTarget(target)).toBe(shown)
})
