! Passes a message around all ranks, each of which adds its number.
program ring
    use mpi_f08
    implicit none
    integer :: rank, size, sum
    type(MPI_Status) :: status

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    sum = 0
    if (rank > 0) call MPI_Recv(sum, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, status)
    sum = sum + rank
    call MPI_Send(sum, 1, MPI_INTEGER, modulo(rank + 1, size), 0, MPI_COMM_WORLD)
    if (rank == 0) then
        call MPI_Recv(sum, 1, MPI_INTEGER, size - 1, 0, MPI_COMM_WORLD, status)
        print '(a, i0, a, i0, a)', 'the sum of the ranks is ', sum, ' (rank ', status%MPI_SOURCE, ' sent it)'
    end if
    call MPI_Finalize()
end program
