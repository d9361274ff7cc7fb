C     The sum of the squares of all ranks, in fixed form with mpif.h.
      PROGRAM SQUARE
      INCLUDE 'mpif.h'
      INTEGER RANK, TOTAL, IERR
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_ALLREDUCE(RANK*RANK, TOTAL, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, IERR)
      IF (RANK .EQ. 0) PRINT '(A, I0)', 'the sum of squares is ', TOTAL
      CALL MPI_FINALIZE(IERR)
      END
