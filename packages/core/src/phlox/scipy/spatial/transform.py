"""``phlox.scipy.spatial.transform``: rotations in three dimensions, and interpolation between them.

A rotation is a quaternion ``(x, y, z, w)`` of length 1, several are an array of them. Functions of quaternions here
work on the last axis. Derivatives are those of power series where an angle is small, and so finite at the identity.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import numpy as jnp, random
from ..._base.errors import ArgumentError, OptionError, ShapeError
from ..._base.public_names import publish
from ..._base.strictness import lenient
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike

__all__ = ["Rotation", "Slerp"]


def _parts(x: Any) -> list[Any]:
    """The elements of the last axis."""
    return [x[..., i] for i in range(type_of(x).shape[-1])]


def _vectors(function: str, argument: str, x: Any, *shape: int) -> Any:
    """The argument as floats whose last axes have this shape."""
    (x,) = promote_inexact(check_one(function, x))
    if type_of(x).shape[-len(shape) :] != shape:
        expected = ", ".join(["...", *map(str, shape)])
        raise ShapeError(
            f"{function}: {argument} is {type_of(x).short}",
            instead=f"an array of shape [{expected}]",
            shapes=[type_of(x).shape],
        )
    return x


def _norm(x: Any) -> Any:
    """The length of vectors; of zero, where it has no derivative, this is zero."""
    square = jnp.sum(x * x, axis=-1)
    nothing = square == 0
    return jnp.where(nothing, 0, jnp.sqrt(jnp.where(nothing, 1, square)))


def _unit(quat: Any) -> Any:
    return quat / jnp.sqrt(jnp.sum(quat * quat, axis=-1, keepdims=True))


def _product(p: Any, q: Any) -> Any:
    """Hamilton's product: the rotation q, then p."""
    (a, b, c, d), (x, y, z, w) = _parts(p), _parts(q)
    return jnp.stack(
        [
            d * x + w * a + (b * z - c * y),
            d * y + w * b + (c * x - a * z),
            d * z + w * c + (a * y - b * x),
            d * w - a * x - b * y - c * z,
        ],
        axis=-1,
    )


def _half_angle(square: Any) -> tuple[Any, Any]:
    """sin(angle / 2) / angle and cos(angle / 2) of an angle whose square is given."""
    # By series close to 0, where the quotient is 0 / 0 and the square root has no derivative
    small = square <= 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, square))
    ratio = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    return ratio, jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))


def _axes(function: str, seq: str, counts: tuple[int, ...]) -> tuple[list[int], bool]:
    """The numbers of the axes, and whether they turn with the body (capital letters)."""
    intrinsic = seq.isupper()
    axes = ["xyz".find(c) for c in (seq.lower() if intrinsic else seq)]
    if len(axes) not in counts or -1 in axes or any(i == j for i, j in itertools.pairwise(axes)):
        instead = f"{' or '.join(map(str, counts))} letters, all of xyz or all of XYZ, neighbours different"
        raise OptionError(f"{function}: seq={seq!r}", instead=instead)
    return axes, intrinsic


class Rotation(NamedTuple):
    """Rotations in three dimensions (as ``scipy.spatial.transform.Rotation``).

    Rotations are pytrees: they can be arguments and results of transformed functions.

    Args:
      quat: quaternions ``(x, y, z, w)`` of length 1, an array of shape [..., 4], which is not checked. `from_quat`
        takes any length.

    >>> turned = Rotation.from_euler("z", 90, degrees=True).apply(jnp.array([1.0, 2.0, 3.0]))
    >>> [round(float(x), 3) for x in turned]
    [-2.0, 1.0, 3.0]
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of several objects, one after another.

        Args:
          rotations: single rotations, or arrays of them.

        Returns:
          One `Rotation` of them all.

        >>> several = Rotation.from_rotvec(jnp.zeros((2, 3)))
        >>> len(Rotation.concatenate([several, several]))
        4
        """
        return cls(jnp.concatenate([jnp.atleast_2d(rotation.quat) for rotation in rotations]))

    @classmethod
    @lenient
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotation of some angles around axes of coordinates, one after another.

        Args:
          seq: the axes, one to three letters: of 'xyz' around fixed axes, of 'XYZ' around those of the rotated body.
          angles: an array whose last axis has an angle for each letter; or a number for a single letter.
          degrees: whether angles are in degrees, not in radians.

        Returns:
          A `Rotation`, with the other axes of `angles`.

        Raises:
          OptionError: `seq` has other letters, too many, or the same twice in succession.
          ShapeError: the number of angles is not that of the letters.

        >>> Rotation.from_euler("xz", jnp.array([90.0, 0.0]), degrees=True).quat
        Array([0.70710677, 0.        , 0.        , 0.70710677], dtype=float32)
        """
        axes, intrinsic = _axes("from_euler", seq, (1, 2, 3))
        angles = _vectors("from_euler", "angles", jnp.atleast_1d(angles), len(axes))
        # Not `if`, as JAX takes `degrees` as a traced argument.
        angles = jnp.where(degrees, jnp.deg2rad(angles), angles)
        total: Any = None
        for axis, angle in zip(axes, _parts(angles), strict=True):
            parts = [jnp.zeros_like(angle)] * 3
            parts[axis] = jnp.sin(angle / 2)
            quat = jnp.stack([*parts, jnp.cos(angle / 2)], axis=-1)
            # Axes that turn with the body are multiplied from the right.
            total = quat if total is None else _product(total, quat) if intrinsic else _product(quat, total)
        return cls(total)

    @classmethod
    @lenient
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotation of a matrix.

        Args:
          matrix: orthogonal matrices of determinant 1, an array of shape [..., 3, 3].

        Returns:
          A `Rotation`. Matrices that are not orthogonal are not made so.

        Raises:
          ShapeError: the matrices are of another shape.

        >>> Rotation.from_matrix(jnp.eye(3)).quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        m = _vectors("from_matrix", "matrix", matrix, 3, 3)
        trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
        # Of four formulas that which divides by the largest number.
        choice = jnp.argmax(jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1), axis=-1)
        difference = [m[..., k, j] - m[..., j, k] for j, k in ((1, 2), (2, 0), (0, 1))]
        quat = jnp.stack([*difference, 1 + trace], axis=-1)
        for i in range(3):
            parts = [m[..., i, j] + m[..., j, i] for j in range(3)]
            parts[i] = 1 - trace + 2 * m[..., i, i]
            quat = jnp.where((choice == i)[..., None], jnp.stack([*parts, difference[i]], axis=-1), quat)
        return cls(_unit(quat))

    @classmethod
    @lenient
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotation of modified Rodrigues parameters, a vector along the axis of length tan(angle / 4).

        Args:
          mrp: the vectors, an array of shape [..., 3].

        Returns:
          A `Rotation`.

        Raises:
          ShapeError: the vectors are of another shape.

        >>> Rotation.from_mrp(jnp.array([1.0, 0.0, 0.0])).quat
        Array([1., 0., 0., 0.], dtype=float32)
        """
        mrp = _vectors("from_mrp", "mrp", mrp, 3)
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square))

    @classmethod
    @lenient
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """The rotation of a quaternion of any length.

        Args:
          quat: quaternions ``(x, y, z, w)``, an array of shape [..., 4].

        Returns:
          A `Rotation`, with quaternions of length 1.

        Raises:
          ShapeError: the quaternions are of another shape.

        >>> Rotation.from_quat(jnp.array([0, 3, 0, 4])).quat
        Array([0. , 0.6, 0. , 0.8], dtype=float32)
        """
        return cls(_unit(_vectors("from_quat", "quat", quat, 4)))

    @classmethod
    @lenient
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotation of a vector along the axis, whose length is the angle.

        Args:
          rotvec: the vectors, an array of shape [..., 3].
          degrees: whether angles are in degrees, not in radians.

        Returns:
          A `Rotation`.

        Raises:
          ShapeError: the vectors are of another shape.

        >>> [round(float(x), 4) for x in Rotation.from_rotvec(jnp.array([0.0, 90.0, 0.0]), degrees=True).quat]
        [0.0, 0.7071, 0.0, 0.7071]
        """
        rotvec = _vectors("from_rotvec", "rotvec", rotvec, 3)
        rotvec = jnp.where(degrees, jnp.deg2rad(rotvec), rotvec)
        ratio, cos = _half_angle(jnp.sum(rotvec * rotvec, axis=-1, keepdims=True))
        return cls(jnp.concatenate([ratio * rotvec, cos], axis=-1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that changes nothing.

        Args:
          num: how many; None is a single one.
          dtype: dtype of the quaternions.

        Returns:
          A `Rotation`.

        >>> Rotation.identity().quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Rotations of the uniform distribution.

        Args:
          random_key: a PRNG key.
          num: how many; None is a single one.

        Returns:
          A `Rotation`: normal quaternions, divided by their length.

        >>> len(Rotation.random(random.key(0), 3))
        3
        """
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        """The rotations at some indices of the first axis."""
        if self.single:
            raise ArgumentError("a single rotation has no elements", instead="one of quaternions of shape [n, 4]")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """The number of rotations."""
        if self.single:
            raise ArgumentError("a single rotation has no length", instead="one of quaternions of shape [n, 4]")
        return int(type_of(self.quat).shape[0])

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation `other`, and this one after it."""
        return _composed(self.quat, other.quat)

    @lenient
    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The rotated vectors.

        Args:
          vectors: an array of shape [..., 3] that broadcasts with the rotations.
          inverse: whether to turn back.

        Returns:
          An array of the broadcast shape.

        Raises:
          ShapeError: the vectors are of another shape.

        >>> Rotation.from_quat(jnp.array([1, 0, 0, 0])).apply(jnp.array([1, 2, 3]))
        Array([ 1., -2., -3.], dtype=float32)
        """
        matrix, vectors = promote_inexact(self.as_matrix(), _vectors("apply", "vectors", vectors, 3))
        matrix = jnp.where(inverse, jnp.swapaxes(matrix, -1, -2), matrix)
        return jnp.matmul(matrix, vectors[..., None])[..., 0]

    @lenient
    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles around axes of coordinates that give this rotation one after another.

        Args:
          seq: three axes, of 'xyz' for fixed ones, of 'XYZ' for those of the rotated body.
          degrees: whether angles are in degrees, not in radians.

        Returns:
          An array of shape [..., 3]. Where the first and the third axis fall together, the last angle is 0.

        Raises:
          OptionError: `seq` has other letters, or the same twice in succession.

        Source:
          Bernardes and Viollet 2022, Quaternion to Euler angles conversion.

        >>> [round(float(x)) for x in Rotation.from_quat(jnp.array([0.0, 0, 1, 1])).as_euler("xyz", degrees=True)]
        [0, 0, 90]
        """
        axes, intrinsic = _axes("as_euler", seq, (3,))
        i, j, k = axes[::-1] if intrinsic else axes
        first, third = (2, 0) if intrinsic else (0, 2)
        # E. Bernardes and S. Viollet 2022, Quaternion to Euler angles conversion
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = _parts(self.quat)
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
        if not symmetric:
            a, b, c, d = a - c, b + d, c + a, d - b
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        total, rest = jnp.arctan2(b, a), jnp.arctan2(d, c)
        eps = 1e-7
        aligned, opposed = jnp.abs(middle) <= eps, jnp.abs(middle - math.pi) <= eps
        angles: list[Any] = [None, middle, None]
        # Gimbal lock: first and last axis coincide, so only a sum or a difference of their angles is known, and the
        # last one becomes 0.
        turn = jnp.where(aligned, 2 * total, 2 * rest * (1 if intrinsic else -1))
        is_gimbal_lock = aligned | opposed
        ends = [turn, None, 0]
        angles[first] = jnp.where(is_gimbal_lock, ends[first], total - rest)
        angles[third] = jnp.where(is_gimbal_lock, ends[third], total + rest)
        if not symmetric:
            angles[third] = angles[third] * sign
            angles[1] = middle - math.pi / 2
        out = jnp.stack(angles, axis=-1)
        out = (out + math.pi) % (2 * math.pi) - math.pi
        return jnp.where(degrees, jnp.rad2deg(out), out)

    @lenient
    def as_matrix(self) -> Array:
        """The matrices of the rotations.

        Returns:
          An array of shape [..., 3, 3].

        >>> Rotation.from_quat(jnp.array([1, 0, 0, 0])).as_matrix()
        Array([[ 1.,  0.,  0.],
               [ 0., -1.,  0.],
               [ 0.,  0., -1.]], dtype=float32)
        """
        x, y, z, w = _parts(self.quat)
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        rows = [
            [xx - yy - zz + ww, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -xx + yy - zz + ww, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -xx - yy + zz + ww],
        ]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    @lenient
    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters, vectors along the axis of length tan(angle / 4).

        Returns:
          An array of shape [..., 3].

        >>> Rotation.from_quat(jnp.array([1, 0, 0, 0])).as_mrp()
        Array([1., 0., 0.], dtype=float32)
        """
        vector, w = self.quat[..., :3], self.quat[..., 3:]
        # q and -q are the same rotation; the one with w >= 0 has the smaller parameters, and no division by 0.
        sign = jnp.where(w < 0, -1, 1).astype(type_of(w).dtype)
        return sign * vector / (1 + sign * w)

    @lenient
    def as_rotvec(self, degrees: bool = False) -> Array:
        """The vectors along the axis whose length is the angle, from 0 to pi.

        Args:
          degrees: whether angles are in degrees, not in radians.

        Returns:
          An array of shape [..., 3].

        >>> [round(float(x), 3) for x in Rotation.from_quat(jnp.array([0, 0, 1, 1])).as_rotvec()]
        [0.0, 0.0, 1.571]
        """
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        vector, w = quat[..., :3], quat[..., 3]
        square = jnp.sum(vector * vector, axis=-1)
        small = square <= 2.5e-7 * w * w
        # atan(r) = r - r**3 / 3 + …, and angle / sin(angle / 2) = 2 + angle**2 / 12 + 7 angle**4 / 2880 + …
        ratio = square / jnp.where(small, w * w, 1)
        near = 4 * ratio * (1 - 2 / 3 * ratio)
        angle = 2 * jnp.arctan2(jnp.sqrt(jnp.where(small, 1, square)), w)
        scale = jnp.where(small, 2 + near / 12 + 7 * near * near / 2880, angle / jnp.sin(angle / 2))
        return jnp.where(degrees, jnp.rad2deg(scale), scale)[..., None] * vector

    @lenient
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions.

        Args:
          canonical: whether to choose that of both quaternions of a rotation whose last number that is not zero, in the
            order w, x, y, z, is positive.
          scalar_first: whether the order is ``(w, x, y, z)``, not ``(x, y, z, w)``.

        Returns:
          An array of shape [..., 4].

        >>> Rotation.from_quat(jnp.array([0, 3, 0, -4])).as_quat(canonical=True, scalar_first=True)
        Array([ 0.8, -0. , -0.6, -0. ], dtype=float32)
        """
        quat = self.quat
        # The first number of w, x, y, z that is not 0 becomes positive.
        if canonical:
            negative: Any = False
            for i in (2, 1, 0, 3):
                part = quat[..., i : i + 1]
                negative = (part < 0) | ((part == 0) & negative)
            quat = jnp.where(negative, -quat, quat)
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    @lenient
    def inv(self) -> Rotation:
        """The rotations back.

        Returns:
          A `Rotation`.

        >>> Rotation.from_quat(jnp.array([0, 3, 0, 4])).inv().quat
        Array([-0. , -0.6, -0. ,  0.8], dtype=float32)
        """
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], dtype=type_of(self.quat).dtype))

    @lenient
    def magnitude(self) -> Array:
        """The angles of the rotations, from 0 to pi.

        Returns:
          An array of one axis less than the quaternions have.

        >>> round(float(Rotation.from_quat(jnp.array([0, 0, 1, 1])).magnitude()), 3)
        1.571
        """
        # q and -q are the same rotation, hence abs.
        return 2 * jnp.arctan2(_norm(self.quat[..., :3]), jnp.abs(self.quat[..., 3]))

    @lenient
    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean of the rotations, that which has the least sum of squared distances of matrices to them.

        Args:
          weights: a number for each rotation; None are equal ones.

        Returns:
          A single `Rotation`, of the eigenvector of the largest eigenvalue of the quaternions' outer products.

        Raises:
          ShapeError: `weights` is not a vector of a number for each rotation.

        >>> several = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.3]]))
        >>> round(float(several.mean().magnitude()), 4)
        0.2
        """
        shape, dtype = type_of(self.quat).shape, type_of(self.quat).dtype
        vector = jnp.ones(shape[0], dtype) if weights is None else jnp.asarray(weights, dtype)
        if type_of(vector).shape != (len(self),):
            raise ShapeError(
                f"mean: weights are {type_of(vector).short} for {len(self)} rotations",
                instead="a vector with a number for each",
                shapes=[type_of(vector).shape, shape],
            )
        # F. L. Markley et al. 2007, Averaging quaternions: the eigenvector of the largest eigenvalue
        _, vectors = jnp.linalg.eigh(jnp.dot(vector * self.quat.T, self.quat))
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, of a quaternion that is a vector."""
        return type_of(self.quat).ndim == 1


@lenient
def _composed(p: Any, q: Any) -> Rotation:
    return Rotation(_unit(_product(p, q)))


class Slerp(NamedTuple):
    """Spherical linear interpolation between rotations at given times (as ``scipy.spatial.transform.Slerp``).

    `Slerp.init` makes one from times and rotations. Before the first time and after the last, the first and the last
    turn go on.

    Args:
      times: increasing numbers, a vector.
      timedelta: their differences.
      rotations: the rotations at all times but the last.
      rotvecs: the vectors of the rotations from each to the next.

    >>> turn = Slerp.init(jnp.array([0.0, 1.0]), Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True))
    >>> round(float(jnp.rad2deg(turn(0.5).magnitude())), 3)
    45.0
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    @lenient
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation between these rotations.

        Args:
          times: increasing numbers, a vector of one for each rotation, which is not checked.
          rotations: two rotations or more.

        Returns:
          A `Slerp`, a function of times.

        Raises:
          ArgumentError: `rotations` is no `Rotation`.
          ShapeError: it has less than two, or there is not a time for each.

        >>> Slerp.init([0, 1], Rotation.identity(2)).timedelta
        Array([1.], dtype=float32)
        """
        if not isinstance(rotations, Rotation):
            raise ArgumentError(f"Slerp: rotations are of class {type(rotations).__name__}", instead="a Rotation")
        times = jnp.asarray(times, dtype=type_of(rotations.quat).dtype)
        shape = type_of(rotations.quat).shape
        if rotations.single or len(rotations) == 1 or type_of(times).shape != shape[:1]:
            raise ShapeError(
                f"Slerp: times are {type_of(times).short}, the quaternions {type_of(rotations.quat).short}",
                instead="a vector of times, and a rotation for each, at least two",
                shapes=[type_of(times).shape, shape],
            )
        before, after = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), before, (before.inv() * after).as_rotvec())

    @lenient
    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at other times.

        Args:
          times: a number or a vector.

        Returns:
          A `Rotation`, single for a number.

        Raises:
          ShapeError: `times` has several axes.

        >>> Slerp.init([0, 1], Rotation.identity(2))(0.5).quat
        Array([0., 0., 0., 1.], dtype=float32)
        """
        at = jnp.asarray(times, dtype=type_of(self.times).dtype)
        if type_of(at).ndim > 1:
            raise ShapeError(
                f"Slerp: times are {type_of(at).short}", instead="a number or a vector", shapes=[type_of(at).shape]
            )
        # The last of all times begins no turn: it ends the one before.
        place = jnp.clip(jnp.searchsorted(self.times, at) - 1, 0, type_of(self.timedelta).size - 1)
        share = (at - self.times[place]) / self.timedelta[place]
        return Rotation(self.rotations.quat[place]) * Rotation.from_rotvec(self.rotvecs[place] * share[..., None])


publish(__name__)
